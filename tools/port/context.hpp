// SPDX-License-Identifier: BSD-3-Clause
// What stands around the names of a source, as far as its tokens tell.
#pragma once

#include <set>
#include <string_view>
#include <vector>

#include "tools/port/tokenizer.hpp"

namespace viaduct::port {

/// Answers questions about tokens, which are named by their indices.
class Context {
public:
    /// The tokens must outlive it.
    explicit Context(const std::vector<Token>& tokens);

    bool is_in_function(std::size_t token) const { return in_function_[token]; }

    /// Whether a macro makes a string of it.
    bool is_stringified(std::size_t token) const { return stringified_.contains(token); }

    /// Nothing if "void *" can stand for a type or, if the type is all that a macro stands for, wherever this file uses
    /// the macro. Without a use here the macro is for other files.
    std::string_view why_no_pointer(std::size_t type) const;

    /// Whether a type may begin a conversion of C++, which takes a single word: "VIP_ULONG(x)".
    bool begins_conversion(std::size_t type) const;

    /// Nothing if a type begins the declaration of local variables whose addresses are not taken. Elsewhere another
    /// source may rely on the type.
    std::string_view why_not_local(std::size_t type) const;

    /// Whether the program itself declares a name, or asks whether it is defined.
    bool is_declared(std::size_t name) const;

    bool is_compared(std::size_t operand) const;

private:
    const Token& at(std::size_t index) const { return token_at(tokens_, index); }

    /// Whether a type begins a declaration of several names, or possibly does: "void *a, b" is no replacement for
    /// "VIP_PVOID a, b".
    bool declares_several(std::size_t type) const;

    /// Whether a type has a qualifier before it: "const void *p" is no replacement for "const VIP_PVOID p".
    bool is_qualified(std::size_t type) const;

    /// Notes the names that typedefs and enumerations declare.
    void find_declarations();

    /// Returns the end of the declaration.
    std::size_t note_typedef(std::size_t i);

    /// Returns the end of the list, or of what is no list.
    std::size_t note_enumerators(std::size_t i);

    /// Notes what is inside functions. The braces of the branches of an #if count once; a macro has its own.
    void find_functions();

    /// Whether a brace inside a function begins a block, and not a structure or a list of values.
    bool opens_block(std::size_t brace) const;

    /// Whether a brace outside of functions begins one. Those with parameters as in K&R C have declarations before it.
    bool opens_function(std::size_t brace) const;

    /// Notes the names after &, as in "&(p->r)".
    void note_addressed(std::size_t operand);

    /// Notes which names have their addresses taken, and which tokens become strings.
    void look_around();

    const std::vector<Token>& tokens_;
    std::vector<bool> in_function_;         // of each token
    std::set<std::size_t> declared_;        // tokens that typedefs and enumerations declare
    std::set<std::string_view> addressed_;  // names after &
    std::set<std::size_t> stringified_;     // tokens that a macro makes a string of
};

}  // namespace viaduct::port

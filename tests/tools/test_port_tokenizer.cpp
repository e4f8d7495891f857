// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/port/call.hpp"
#include "tools/port/tokenizer.hpp"

using namespace viaduct::port;

namespace {

using Words = std::vector<std::string>;

Words words_of(std::string_view source) {
    Words words;
    for (const Token& token : tokenize(source).all) words.emplace_back(token.text);
    return words;
}

}  // namespace

TEST_CASE("port_tokenizer: words, numbers, operators") {
    CHECK(words_of("a1 = b->c.d + 0x1Fu*1.5e-3;") ==
          Words{"a1", "=", "b", "->", "c", ".", "d", "+", "0x1Fu", "*", "1.5e-3", ";"});
    CHECK(words_of("a::b(1'000'000)") == Words{"a", "::", "b", "(", "1'000'000", ")"});
    CHECK(words_of("").empty());
}

TEST_CASE("port_tokenizer: a byte order mark") {
    const std::string source = "\xEF\xBB\xBF#define a\n";
    const Tokens tokens = tokenize(source);
    REQUIRE(tokens.all.size() == 2);
    CHECK(tokens.all[0].is(TokenKind::Directive, "define"));
    CHECK(tokens.all[0].column == 2);
}

TEST_CASE("port_tokenizer: comments and literals hide names") {
    CHECK(words_of("a /* b */ c // d\ne") == Words{"a", "c", "e"});
    CHECK(words_of("a /* b // c\n d */ e") == Words{"a", "e"});
    CHECK(words_of("f(\"a /* b\", 'c', L\"d\") /* */") ==
          Words{"f", "(", "\"a /* b\"", ",", "'c'", ",", "L\"d\"", ")"});
    CHECK(words_of(R"("a\"b" c '\'' d)") == Words{R"("a\"b")", "c", R"('\'')", "d"});
    CHECK(words_of("a /* never closed") == Words{"a"});
}

TEST_CASE("port_tokenizer: raw strings") {
    CHECK(words_of("R\"(a\" b)\" c") == Words{"R\"(a\" b)\"", "c"});
    CHECK(words_of("u8R\"x(a)\" b\n)x\" c") == Words{"u8R\"x(a)\" b\n)x\"", "c"});
    CHECK(words_of("a R\"never(closed\nb") == Words{"a", "R\"never(closed\nb"});
}

TEST_CASE("port_tokenizer: an open literal ends with its line") {
    CHECK(words_of("#error don't\na") == Words{"error", "don", "'t", "a"});
    CHECK(words_of("\"open\na") == Words{"\"open", "a"});
    CHECK(words_of("\"open\\") == Words{"\"open\\"});
}

TEST_CASE("port_tokenizer: continued lines") {
    CHECK(words_of("Vip\\\nPost\\\r\nSend") == Words{"VipPostSend"});
    CHECK(words_of("// a \\\n b\nc") == Words{"c"});
    CHECK(words_of("\"a\\\nb\" c") == Words{"\"ab\"", "c"});
    const Tokens tokens = tokenize("a\\\nb c\nd");
    CHECK(tokens.all[1].line == 2);
    CHECK(tokens.all[1].column == 3);
    CHECK(tokens.starts_inside == std::vector<bool>{false, true, false});
}

TEST_CASE("port_tokenizer: columns count characters") {
    const Tokens tokens = tokenize("/* \xC3\xA4\xC3\xB6 */ a");
    CHECK(tokens.all[0].column == 10);
}

TEST_CASE("port_tokenizer: directives") {
    const Tokens tokens = tokenize("#include <a/b.h> // c\n # define X y\nz");
    REQUIRE(tokens.all.size() == 6);
    CHECK(tokens.all[1].is(TokenKind::Header, "<a/b.h>"));
    CHECK(tokens.all[2].is(TokenKind::Directive, "define"));
    CHECK(tokens.all[4].directive == tokens.all[2].directive);
    CHECK(tokens.all[5].directive == 0);
}

TEST_CASE("port_tokenizer: #if 0") {
    const auto enabled = [](std::string_view source) {
        Words words;
        for (const Token& token : tokenize(source).all)
            if (!token.disabled && token.kind == TokenKind::Identifier) words.emplace_back(token.text);
        return words;
    };
    CHECK(enabled("#if 0\na\n#else\nb\n#endif\nc") == Words{"b", "c"});
    CHECK(enabled("#if 1\na\n#else\nb\n#endif\nc") == Words{"a", "c"});
    CHECK(enabled("#if 0\n#ifdef x\na\n#else\nb\n#endif\n#endif\nc") == Words{"x", "c"});
    CHECK(enabled("#if X\na\n#else\nb\n#endif\n#endif\n#else\nc") == Words{"X", "a", "b", "c"});
}

TEST_CASE("port_calls: arguments and constants") {
    const Tokens tokens = tokenize("#define N 1024\n#define M (4 * N)\nf(a, g(b, c), {d, e}) h() i(");
    std::size_t name = 0;
    while (!tokens.all[name].is("f")) ++name;
    const auto call = parse_call(tokens.all, name);
    REQUIRE(call);
    CHECK(call->arguments.size() == 3);
    const auto constants = find_constants(tokens.all);
    CHECK(constants.at("M") == 4096);
    CHECK(parse_call(tokens.all, tokens.all.size() - 2) == std::nullopt);
    const auto value = [](std::string_view text) { return value_of(tokenize(text).all, {}); };
    CHECK(value("((1 << 20))") == 1 << 20);
    CHECK(value("0x10UL") == 16);
    CHECK(value("a") == std::nullopt);
    CHECK(value("1 +") == std::nullopt);
    CHECK(value("1 << 64") == std::nullopt);
}

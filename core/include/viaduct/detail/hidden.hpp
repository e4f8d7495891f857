// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace viaduct {

struct Internals;

namespace detail {

/// A member of a public structure that only the library sets, for which its default is right in programs.
template <class T>
class Hidden {
public:
    constexpr Hidden() noexcept = default;
    constexpr operator T() const noexcept { return value_; }  // NOLINT: implicit by intent

private:
    friend struct viaduct::Internals;
    constexpr explicit Hidden(T value) noexcept : value_(value) {}

    T value_{};
};

}  // namespace detail
}  // namespace viaduct

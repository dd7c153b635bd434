// SPDX-License-Identifier: LGPL-2.1-or-later
//
// fmt's own code, compiled once and linked into each program. As headers alone it would be
// compiled in every file that formats, which was most of the time of a build; as a shared
// library it is one more for the helper to load, which costs that more than it does.

#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto thousands_sep_impl<char>(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;

} // namespace detail
FMT_END_NAMESPACE

#pragma once
#include <cmath>
#include <concepts>
#include <stdexcept>
#include <string>

#include <fmt/format.h>

namespace braid {

/// The base of every exception of the library, except those of the standard library when memory or threads run out.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A tensor's shape does not fit the operation.
struct ShapeError : Error {
  using Error::Error;
};

/// A tensor's element type does not fit the operation.
struct DTypeError : Error {
  using Error::Error;
};

/// A value (a setting, an index, an element) is outside its range.
struct ValueError : Error {
  using Error::Error;
};

/// A file is missing, unreadable or damaged.
struct FileError : Error {
  using Error::Error;
};

/// A function needs a library without which braid was built. "Install and link" in the manual lists them.
struct MissingLibrary : Error {
  /// Both are in the message.
  MissingLibrary(const std::string& function, const std::string& library)
      : Error(fmt::format("{}: this build of braid is without {}, which it needs", function, library)) {}
};

namespace detail {
const auto& without_sign_of_nan(const auto& x) { return x; }
auto without_sign_of_nan(const std::floating_point auto& x) { return x == x ? x : std::abs(x); }

/// Formats a T as the text that to_string() makes of it.
template <class T>
struct TextFormatter : fmt::formatter<std::string> {
  fmt::format_context::iterator format(const T& value, fmt::format_context& context) const {
    return fmt::formatter<std::string>::format(to_string(value), context);
  }
};
}  // namespace detail

/// fmt::format, but a NaN is `nan` whatever its sign, which says nothing.
template <class... Args>
std::string formatted(fmt::format_string<Args...> text, const Args&... args) {
  return fmt::format(fmt::runtime(fmt::string_view(text)), detail::without_sign_of_nan(args)...);
}

/// Throws E with the formatted message, `op: argument must .. but has ..`, unless `ok`.
template <class E, class... Args>
void check(bool ok, fmt::format_string<Args...> message, const Args&... args) {
  if (!ok) [[unlikely]]
    throw E(formatted(message, args...));
}

/// Throws ShapeError with the message unless `ok`.
template <class... Args>
void check_shape(bool ok, fmt::format_string<Args...> message, const Args&... args) {
  check<ShapeError>(ok, message, args...);
}

/// Throws DTypeError with the message unless `ok`.
template <class... Args>
void check_dtype(bool ok, fmt::format_string<Args...> message, const Args&... args) {
  check<DTypeError>(ok, message, args...);
}

/// Throws ValueError with the message unless `ok`.
template <class... Args>
void check_value(bool ok, fmt::format_string<Args...> message, const Args&... args) {
  check<ValueError>(ok, message, args...);
}

}  // namespace braid

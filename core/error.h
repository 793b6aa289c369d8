#pragma once
#include <stdexcept>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace braid {

/// The base of every exception of the library, except std::bad_alloc when memory runs out.
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

/// A function needs a library without which braid was built. docs/install.md lists them.
struct MissingLibrary : Error {
  /// Both are in the message.
  MissingLibrary(const std::string& function, const std::string& library)
      : Error(fmt::format("{}: this build of braid is without {}, which it needs", function, library)) {}
};

/// Throws E with the formatted message unless `ok`. Messages read
/// `op: argument must ... but has ...`.
template <class E, class... Args>
void check(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  if (!ok) [[unlikely]]
    throw E(fmt::format(message, std::forward<Args>(args)...));
}

/// Throws ShapeError with the message unless `ok`.
template <class... Args>
void check_shape(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  check<ShapeError>(ok, message, std::forward<Args>(args)...);
}

/// Throws DTypeError with the message unless `ok`.
template <class... Args>
void check_dtype(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  check<DTypeError>(ok, message, std::forward<Args>(args)...);
}

/// Throws ValueError with the message unless `ok`.
template <class... Args>
void check_value(bool ok, fmt::format_string<Args...> message, Args&&... args) {
  check<ValueError>(ok, message, std::forward<Args>(args)...);
}

}  // namespace braid

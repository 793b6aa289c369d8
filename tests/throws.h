#pragma once
#include <exception>
#include <source_location>
#include <string>
#include <typeinfo>

#include <gtest/gtest.h>

namespace braid {

/// A row of the table of errors: a call of the public function `name` that throws the exception E of its docstring, not
/// one derived from it, with a message, which it returns. tests/tools/docstrings_test.py compares rows and docstrings.
template <class E>
std::string throws(const char* name, auto&& call, std::source_location row = std::source_location::current()) {
  const testing::ScopedTrace trace(row.file_name(), static_cast<int>(row.line()), name);
  try {
    call();
  } catch (const std::exception& error) {
    EXPECT_TRUE(typeid(error) == typeid(E)) << typeid(error).name() << ": " << error.what();
    EXPECT_STRNE(error.what(), "");
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

}  // namespace braid

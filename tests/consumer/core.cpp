#include <braid/core/format.h>

#include <iostream>

// The identity matrix, by the first room of the library.
int main() {
  std::cout << braid::eye(2) << '\n';
  return braid::to_string(braid::eye(2).shape()) == "[2, 2]" ? 0 : 1;
}

#include <braid/core/format.h>

#include <iostream>

// Prints the identity matrix; needs only braid::core.
int main() {
  std::cout << braid::eye(2) << '\n';
  return braid::to_string(braid::eye(2).shape()) == "[2, 2]" ? 0 : 1;
}

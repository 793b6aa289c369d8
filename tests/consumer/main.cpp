#include <braid/braid.h>
#include <fmt/core.h>

int main() { fmt::print("{}\n", braid::Shape{2, 3}.numel()); }

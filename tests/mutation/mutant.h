// Included into every file of a build with planted mutants: which mutant is on, and which of them a run has reached.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <utility>

/// Of all processes of a test, killed ones too: BRAID_MUTANT is the number of the one that is on, BRAID_MUTANT_REACHED
/// a file with a byte for each, which becomes 1 when its switch is passed.
struct BraidMutants {
  int on = -1;
  volatile unsigned char* reached = nullptr;
  long size = 0;

  BraidMutants() {
    if (const char* number = std::getenv("BRAID_MUTANT")) on = std::atoi(number);
    const char* path = std::getenv("BRAID_MUTANT_REACHED");
    const int file = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (file < 0) return;
    size = lseek(file, 0, SEEK_END);
    void* bytes = mmap(nullptr, static_cast<unsigned long>(size), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != MAP_FAILED) reached = static_cast<unsigned char*>(bytes);
    close(file);
  }

  static const BraidMutants& get() {
    static const BraidMutants mutants;
    return mutants;
  }
};

__attribute__((noinline)) inline bool braid_mutant(int number) {
  const BraidMutants& mutants = BraidMutants::get();
  if (mutants.reached && !mutants.reached[number]) mutants.reached[number] = 1;
  return number == mutants.on;
}

template <class T>
T& braid_kept(T value) {
  static thread_local std::optional<T> kept;
  return kept.emplace(std::move(value));
}

#include <braid/core/files/file_system.h>

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>

namespace braid {
namespace {

std::atomic<FileSystem*>& in_use() {
  static FileSystem system;
  static std::atomic<FileSystem*> instance = &system;
  return instance;
}

}  // namespace

int FileSystem::open(const char* path, int flags) { return ::open(path, flags, 0666); }
ssize_t FileSystem::read(int file, void* out, std::size_t bytes) { return ::read(file, out, bytes); }
ssize_t FileSystem::write(int file, const void* data, std::size_t bytes) { return ::write(file, data, bytes); }
int FileSystem::fsync(int file) { return ::fsync(file); }
int FileSystem::close(int file) { return ::close(file); }
int FileSystem::rename(const char* from, const char* to) { return std::rename(from, to); }
int FileSystem::unlink(const char* path) { return ::unlink(path); }

FileSystem& file_system() { return *in_use(); }

WithFileSystem::WithFileSystem(FileSystem& files) : before_(in_use().exchange(&files)) {}
WithFileSystem::~WithFileSystem() { in_use() = before_; }

}  // namespace braid

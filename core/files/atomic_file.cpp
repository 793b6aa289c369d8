#include <braid/core/files/atomic_file.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ostream>
#include <random>
#include <streambuf>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <braid/core/error.h>
#include <braid/core/files/file_system.h>
#include <braid/core/platform/files.h>

namespace braid {
namespace {

namespace fs = std::filesystem;

/// The buffer of a stream that writes to a file. Keeps the first error.
class Buffer : public std::streambuf {
 public:
  explicit Buffer(const OutputFile& file) : file_(file) { setp(bytes_.data(), bytes_.data() + bytes_.size()); }

  void finish() {
    sync();
    errno = error_;
    file_.require(error_ == 0, "cannot be written");
  }

 protected:
  int sync() override {
    put(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    setp(bytes_.data(), bytes_.data() + bytes_.size());
    return error_ == 0 ? 0 : -1;
  }

  int_type overflow(int_type c) override {
    if (sync() != 0) return traits_type::eof();
    return traits_type::eq_int_type(c, traits_type::eof()) ? traits_type::not_eof(c)
                                                           : sputc(traits_type::to_char_type(c));
  }

  std::streamsize xsputn(const char* data, std::streamsize n) override {
    if (n <= epptr() - pptr()) return std::streambuf::xsputn(data, n);
    if (sync() == 0) put(data, static_cast<std::size_t>(n));
    return error_ == 0 ? n : 0;
  }

 private:
  void put(const char* data, std::size_t n) {
    if (error_ == 0 && !file_.write(data, n)) error_ = errno;
  }

  const OutputFile& file_;
  int error_ = 0;
  std::array<char, 16384> bytes_;
};

/// A new file beside `path`, removed unless it has replaced that.
class Temporary {
 public:
  Temporary(const std::string& where, const fs::path& path)
      : path_(path),
        name_(fmt::format("{}.{:08x}{:08x}.tmp", path.string(), std::random_device()(), std::random_device()())),
        file_(where, name_, OpenFor::creating, "cannot be created") {}
  ~Temporary() {
    if (!name_.empty()) file_system().unlink(name_);
  }

  void fill(const std::function<void(std::ostream&)>& write) {
    Buffer buffer(file_);
    std::ostream out(&buffer);
    write(out);
    buffer.finish();
    errno = EIO;
    file_.require(out.good(), "the stream failed");
    file_.sync("fsync failed");
    file_.close();
  }

  void replace() {
    file_.require(file_system().rename(name_, path_) == 0, "cannot be replaced");
    name_.clear();
  }

 private:
  const fs::path& path_;
  fs::path name_;
  OutputFile file_;
};

/// Whether a file's name is that of a Temporary.
bool is_temporary(std::string_view name) {
  constexpr std::size_t kTail = std::string_view(".0123456789abcdef.tmp").size();
  if (name.size() <= kTail) return false;
  const std::string_view tail = name.substr(name.size() - kTail);
  return tail.front() == '.' && tail.find_first_not_of("0123456789abcdef", 1) == 17 && tail.ends_with(".tmp");
}

}  // namespace

void write_file_atomically(const fs::path& path, const std::function<void(std::ostream&)>& write) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  // Renaming over a device would replace it.
  check<FileError>(!fs::exists(status) || fs::is_regular_file(status),
                   "write_file_atomically: {}: must be a regular file but is something else", path.string());
  std::string where = "write_file_atomically: " + path.string();
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  Temporary temporary(where, path);
  temporary.fill(write);
  temporary.replace();
  // The new file is in place: from here on no allocation may fail.
  OutputFile(std::move(where), folder, OpenFor::syncing, "its folder cannot be opened")
      .sync("fsync of its folder failed");
}

void remove_temporary_files(const fs::path& folder) {
  const int result = platform::for_each_name(folder, [&](const char* name) {
    if (is_temporary(name)) file_system().unlink(folder / name);
  });
  check<FileError>(result == 0, "remove_temporary_files: {}: {}", folder.string(), std::strerror(errno));
}

}  // namespace braid

#include <braid/core/files/npy.h>

#include <zip.h>

#include <deque>
#include <memory>
#include <ostream>
#include <vector>

#include <braid/core/files/atomic_file.h>
#include <braid/core/files/budget.h>
#include <braid/core/files/detail/npy_format.h>
#include <braid/core/files/file_system.h>
#include <braid/core/utf8.h>

namespace braid {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kEnding = ".npy";
constexpr std::string_view kNothing("PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 22);  // libzip would not write a file

template <auto release>
struct Release {
  void operator()(auto* resource) const { release(resource); }
};
using Archive = std::unique_ptr<zip_t, Release<zip_discard>>;
using Entry = std::unique_ptr<zip_file_t, Release<zip_fclose>>;
using Source = std::unique_ptr<zip_source_t, Release<zip_source_free>>;

/// Throws E with libzip's message, or bad_alloc, unless `ok`.
template <class E>
void require(bool ok, const std::string& where, zip_error_t* error) {
  if (ok) return;
  if (zip_error_code_zip(error) == ZIP_ER_MEMORY) throw std::bad_alloc();
  throw E(where + ": " + zip_error_strerror(error));
}

Source source_of(const void* bytes, std::uint64_t size) {
  Source source(zip_source_buffer_create(bytes, size, /*freep=*/0, nullptr));
  if (!source) throw std::bad_alloc();
  return source;
}

/// Opens the archive in a source, which its owner still has to release.
Archive open(const Source& source, int flags, const std::string& where) {
  zip_error_t error;
  zip_error_init(&error);
  const std::unique_ptr<zip_error_t, Release<zip_error_fini>> reason(&error);
  zip_source_keep(source.get());
  Archive archive(zip_open_from_source(source.get(), flags, &error));
  if (!archive) zip_source_free(source.get());
  require<FileError>(archive != nullptr, where, &error);
  return archive;
}

/// The array of an entry.
Tensor read_entry(zip_t* archive, const zip_stat_t& entry, const std::string& where) {
  constexpr zip_uint64_t kKnown =
      ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_ENCRYPTION_METHOD;
  check<FileError>((entry.valid & kKnown) == kKnown && entry.encryption_method == ZIP_EM_NONE &&
                       (entry.comp_method == ZIP_CM_STORE || entry.comp_method == ZIP_CM_DEFLATE),
                   "{}: must be stored or deflated, and not encrypted", where);
  const zip_uint64_t most = entry.comp_method == ZIP_CM_STORE ? 1 : 1032;  // by which a byte expands
  check<FileError>(entry.size / most <= entry.comp_size, "{}: {} bytes cannot be {} when inflated", where,
                   entry.comp_size, entry.size);
  const Entry file(zip_fopen_index(archive, entry.index, 0));
  require<FileError>(file != nullptr, where, zip_get_error(archive));
  const auto read = [&](void* out, std::uint64_t bytes) {
    auto* to = static_cast<char*>(out);
    while (bytes > 0) {
      const zip_int64_t got = zip_fread(file.get(), to, bytes);
      require<FileError>(got >= 0, where, zip_file_get_error(file.get()));
      check<FileError>(got > 0, "{}: expected {} more bytes but the entry ends", where, bytes);
      to += got;
      bytes -= static_cast<std::uint64_t>(got);
    }
  };
  Tensor tensor = detail::read_npy({where, entry.size, read});
  char next = 0;  // libzip compares the checksum at the end
  const zip_int64_t more = zip_fread(file.get(), &next, 1);
  require<FileError>(more >= 0, where, zip_file_get_error(file.get()));
  check<FileError>(more == 0, "{}: is longer than its size", where);
  return tensor;
}

void add_entry(zip_t* archive, const std::string& name, const std::string& bytes, bool compressed) {
  zip_source_t* const source = zip_source_buffer(archive, bytes.data(), bytes.size(), /*freep=*/0);
  const zip_int64_t index =
      source == nullptr ? -1 : zip_file_add(archive, (name + std::string(kEnding)).c_str(), source, ZIP_FL_ENC_UTF_8);
  if (index < 0) zip_source_free(source);
  require<ValueError>(index >= 0, fmt::format("save_npz: array '{}'", excerpt(name)), zip_get_error(archive));
  const auto entry = static_cast<zip_uint64_t>(index);
  constexpr zip_uint16_t kFirstDay = 1 << 5 | 1;  // of 1980, where the time of a zip begins
  const bool set = zip_set_file_compression(archive, entry, compressed ? ZIP_CM_DEFLATE : ZIP_CM_STORE, 0) == 0 &&
                   zip_file_set_dostime(archive, entry, 0, kFirstDay, 0) == 0;
  require<Error>(set, "save_npz", zip_get_error(archive));
}

/// The archive of these tensors, written into `target`.
void fill(const Source& target, const std::map<std::string, Tensor>& tensors, bool compressed) {
  std::deque<std::string> contents;  // must stay until the archive is closed
  Archive archive = open(target, ZIP_TRUNCATE, "save_npz");
  for (const auto& [name, tensor] : tensors) {
    check_value(!name.empty(), "save_npz: the name of an array must not be empty");
    check_value(tensor.defined(), "save_npz: array '{}' is undefined", excerpt(name));
    std::string& bytes = contents.emplace_back(detail::npy_header(tensor));
    bytes += detail::element_bytes(tensor.contiguous());
    add_entry(archive.get(), name, bytes, compressed);
  }
  require<Error>(zip_close(archive.get()) == 0, "save_npz", zip_get_error(archive.get()));
  static_cast<void>(archive.release());  // closed
}

}  // namespace

std::map<std::string, Tensor> load_npz(const fs::path& path) {
  const std::string where = "load_npz: " + path.string();
  const std::string bytes = RegularFile(where, path).contents();
  check<FileError>(bytes.size() >= kNothing.size(), "{}: Not a zip archive", where);  // to libzip an empty one is
  const Source source = source_of(bytes.data(), bytes.size());
  const Archive archive = open(source, ZIP_RDONLY | ZIP_CHECKCONS, where);
  std::map<std::string, Tensor> tensors;
  Budget budget(bytes.size());  // entries that share their bytes would take more than the file
  const zip_int64_t count = zip_get_num_entries(archive.get(), 0);
  for (zip_int64_t i = 0; i < count; ++i) {
    zip_stat_t entry;
    const bool known = zip_stat_index(archive.get(), static_cast<zip_uint64_t>(i), 0, &entry) == 0;
    require<FileError>(known, where, zip_get_error(archive.get()));
    const std::string file = (entry.valid & ZIP_STAT_NAME) != 0 ? entry.name : "";
    const std::string its = fmt::format("{}: '{}'", where, excerpt(file));
    check<FileError>(file.size() > kEnding.size() && file.ends_with(kEnding), "{}: its name must end with .npy", its);
    const std::string name = file.substr(0, file.size() - kEnding.size());
    check<FileError>(!tensors.contains(name), "{}: is in the archive twice", its);
    budget.spend(entry.comp_size, where, "compressed bytes");
    tensors.emplace(name, read_entry(archive.get(), entry, its));
  }
  return tensors;
}

void save_npz(const fs::path& path, const std::map<std::string, Tensor>& tensors, const SaveNpz& options) {
  if (tensors.empty()) return write_file_atomically(path, [](std::ostream& out) { out << kNothing; });
  const Source archive = source_of(nullptr, 0);
  fill(archive, tensors, options.compressed);
  const auto check_source = [&](bool ok) { require<Error>(ok, "save_npz", zip_source_error(archive.get())); };
  check_source(zip_source_open(archive.get()) == 0);
  write_file_atomically(path, [&](std::ostream& out) {
    std::vector<char> chunk(1 << 20);
    for (zip_int64_t got = 1; got > 0;) {
      got = zip_source_read(archive.get(), chunk.data(), chunk.size());
      check_source(got >= 0);
      out.write(chunk.data(), got);
    }
  });
  zip_source_close(archive.get());
}

}  // namespace braid

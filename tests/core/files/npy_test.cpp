#include <braid/core/files/npy.h>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <tests/support.h>

namespace braid::npy_test {
namespace {

namespace fs = std::filesystem;
using namespace std::string_literals;
using testing::ElementsAre;
using testing::HasSubstr;

/// Each test has an empty folder of its own.
struct Npy : testing::Test {
  Npy() { fs::create_directories(folder); }
  ~Npy() override { fs::remove_all(folder); }

  std::string read(const fs::path& path) const {
    return (std::stringstream() << std::ifstream(path, std::ios::binary).rdbuf()).str();
  }
  void write(const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }

  /// What loading a file complains about, without its path.
  std::string complaint(const fs::path& path, auto load, const std::string& name) const {
    const std::string prefix = name + ": " + path.string() + ": ";
    try {
      load(path);
    } catch (const FileError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(prefix));
      return std::string(error.what()).substr(prefix.size());
    }
    return "none";
  }
  std::string complaint() const {
    return complaint(
        file, [](const fs::path& path) { load_npy(path); }, "load_npy");
  }
  std::string complaint_of_npz() const {
    return complaint(
        npz, [](const fs::path& path) { load_npz(path); }, "load_npz");
  }
  std::string complaint_about(const std::string& header, std::size_t data_bytes) const {
    write(with_header(header) + std::string(data_bytes, '\0'));
    return complaint();
  }

  /// A file of format 1.0 up to its elements.
  static std::string with_header(const std::string& header) {
    const auto length = static_cast<std::uint16_t>(header.size());
    return "\x93NUMPY\1\0"s + std::string(reinterpret_cast<const char*>(&length), 2) + header;
  }

  /// Runs a script of Debian's Python in the folder; skips the test without numpy.
  bool python([[maybe_unused]] const std::string& script) const {
#ifdef BRAID_EMULATED
    return false;
#else
    std::ofstream(folder / "script.py") << "import numpy as np\n" << script;
    const std::string run = "cd '" + folder.string() + "' && /usr/bin/python3 -B ";
    if (std::system((run + "-c 'import numpy' 2>/dev/null").c_str()) != 0) return false;
    EXPECT_EQ(std::system((run + "script.py").c_str()), 0) << script;
    return true;
#endif
  }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_npy_" + test);
  const fs::path file = folder / "data.npy", npz = folder / "data.npz";
};

std::map<std::string, Tensor> some_tensors() {
  return {{"ids", Tensor::of<std::int32_t>({3}, {-1, 0, std::numeric_limits<std::int32_t>::max()})},
          {"block.0.weight", Tensor::of<float>({2, 1, 2}, {1.5F, -0.0F, INFINITY, 1e-45F})},
          {"x/y é", Tensor::of<double>({2}, {0.1, -1e308})},
          {"scalar", scalar(3, DType::f64)},
          {"many", arange(100'003)},
          {"nothing", Tensor({4, 0, 2}, DType::f32)}};
}

TEST_F(Npy, ReadsWhatItWrote) {
  for (const auto& [name, tensor] : some_tensors()) {
    save_npy(file, tensor);
    EXPECT_TRUE(identical(load_npy(file), tensor)) << name;
    EXPECT_EQ((read(file).size() - static_cast<std::size_t>(tensor.numel()) * size_of(tensor.dtype())) % 64, 0U);
  }
  const Tensor matrix = arange(6).reshape({2, 3});
  save_npy(file, matrix.transpose());
  EXPECT_THAT(load_npy(file).to_vector<float>(), ElementsAre(0, 3, 1, 4, 2, 5));
}

TEST_F(Npy, WritesTheBytesOfNumpy) {
  const auto header = [&](const Tensor& t) {
    save_npy(file, t);
    return read(file).substr(0, 128);
  };
  const std::string start("\x93NUMPY\1\0\x76\0", 10);
  EXPECT_EQ(header(zeros({2, 3})), start + "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }" +
                                       std::string(128 - 10 - 59 - 1, ' ') + "\n");
  EXPECT_THAT(header(zeros({5}, DType::i32)), HasSubstr("{'descr': '<i4', 'fortran_order': False, 'shape': (5,), } "));
  EXPECT_THAT(header(scalar(1, DType::f64)), HasSubstr("{'descr': '<f8', 'fortran_order': False, 'shape': (), } "));
}

TEST_F(Npy, ReadsWhatNumpyWrote) {
  if (!python(R"(
x = (np.arange(24).reshape(2, 3, 4) - 5) / 4
for dtype in ["f2", "f4", "f8"]: np.save(dtype, x.astype(dtype))
for dtype in ["i1", "i2", "i4", "i8"]: np.save(dtype, (4 * x).astype(dtype))
for dtype in ["u1", "u2", "u4", "u8"]: np.save(dtype, (4 * x + 5).astype(dtype))
np.save("bool", x > 0)
np.save("fortran", np.asfortranarray(x))
np.save("transposed", x.astype("f4").transpose(2, 0, 1))
np.save("scalar", np.float32(1.5))
np.save("empty", np.zeros((3, 0), "f4", order="F"))
np.save("vector", np.arange(70000, dtype="f8"))
for version in (1, 2, 3):
    with open(f"version{version}.npy", "wb") as file: np.lib.format.write_array(file, x, version=(version, 0))
halves = np.arange(65536, dtype="u2").view("f2")
np.save("halves", halves)
np.save("halves_f4", halves.astype("f4"))
)"))
    GTEST_SKIP() << "without numpy";
  Tensor x({2, 3, 4}, DType::f64);
  for (std::int64_t i = 0; i < 24; ++i) x.mutable_data<double>()[i] = static_cast<double>(i - 5) / 4;
  const auto loaded = [&](const std::string& name) { return load_npy(folder / (name + ".npy")); };
  EXPECT_TRUE(identical(loaded("f8"), x));
  EXPECT_TRUE(identical(loaded("fortran"), x));
  for (int version = 1; version <= 3; ++version)
    EXPECT_TRUE(identical(loaded("version" + std::to_string(version)), x)) << version;
  for (const char* name : {"f2", "f4"}) EXPECT_TRUE(identical(loaded(name), x.to(DType::f32))) << name;
  EXPECT_TRUE(identical(loaded("transposed"), x.to(DType::f32).permute({2, 0, 1}).contiguous()));
  const Tensor ids = arange(24, DType::i32).reshape({2, 3, 4});
  for (const char* name : {"u1", "u2", "u4", "u8"}) EXPECT_TRUE(identical(loaded(name), ids)) << name;
  for (const char* name : {"i1", "i2", "i4", "i8"}) {
    const Tensor t = loaded(name);
    EXPECT_EQ(t.dtype(), DType::i32);
    EXPECT_EQ(t.at({0, 0, 0}), -5) << name;
    EXPECT_EQ(t.at({1, 2, 3}), 18) << name;
  }
  EXPECT_EQ(loaded("bool").at({0, 1, 1}), 0);
  EXPECT_EQ(loaded("bool").at({0, 1, 2}), 1);
  EXPECT_TRUE(identical(loaded("scalar"), scalar(1.5)));
  EXPECT_TRUE(identical(loaded("empty"), zeros({3, 0})));
  EXPECT_TRUE(identical(loaded("vector"), arange(70000, DType::f64)));
  const std::vector<float> halves = loaded("halves").to_vector<float>(), exact = loaded("halves_f4").to_vector<float>();
  for (std::size_t i = 0; i < 65536; ++i)
    ASSERT_TRUE(std::isnan(exact[i]) ? std::isnan(halves[i])
                                     : halves[i] == exact[i] && std::signbit(halves[i]) == std::signbit(exact[i]))
        << i;
}

TEST_F(Npy, WritesWhatNumpyReads) {
  save_npy(folder / "f4.npy", arange(6).reshape({2, 3}));
  save_npy(folder / "f8.npy", scalar(0.1, DType::f64));
  save_npy(folder / "i4.npy", arange(70'000, DType::i32));
  save_npz(folder / "stored.npz", some_tensors());
  save_npz(folder / "deflated.npz", some_tensors(), {.compressed = true});
  save_npz(folder / "none.npz", {});
  if (!python(R"(
def same(a, b): assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes(), (a, b)
same(np.load("f4.npy"), np.arange(6, dtype="f4").reshape(2, 3))
same(np.load("f8.npy"), np.array(0.1))
same(np.load("i4.npy"), np.arange(70000, dtype="i4"))
for name in ("stored", "deflated"):
    z = np.load(name + ".npz")
    assert sorted(z) == sorted(["ids", "block.0.weight", "x/y é", "scalar", "many", "nothing"]), list(z)
    same(z["ids"], np.array([-1, 0, 2**31 - 1], "i4"))
    same(z["block.0.weight"], np.array([1.5, -0.0, np.inf, 1e-45], "f4").reshape(2, 1, 2))
    same(z["x/y é"], np.array([0.1, -1e308]))
    same(z["scalar"], np.array(3.0))
    same(z["many"], np.arange(100003, dtype="f4"))
    same(z["nothing"], np.zeros((4, 0, 2), "f4"))
assert list(np.load("none.npz")) == []
)"))
    GTEST_SKIP() << "without numpy";
  EXPECT_LT(fs::file_size(folder / "deflated.npz"), fs::file_size(folder / "stored.npz") / 2);
}

TEST_F(Npy, ReadsArchives) {
  for (const bool compressed : {false, true}) {
    save_npz(npz, some_tensors(), {.compressed = compressed});
    const std::string bytes = read(npz);
    const auto loaded = load_npz(npz), expected = some_tensors();
    ASSERT_EQ(loaded.size(), expected.size());
    for (const auto& [name, tensor] : expected) EXPECT_TRUE(identical(loaded.at(name), tensor)) << name;
    save_npz(npz, some_tensors(), {.compressed = compressed});
    EXPECT_EQ(read(npz), bytes);
    EXPECT_EQ(bytes.substr(10, 4), std::string("\0\0\x21\0", 4));  // no time, but the first day that a zip knows
  }
  save_npz(npz, {});
  EXPECT_TRUE(load_npz(npz).empty());
}

TEST_F(Npy, ReadsArchivesOfNumpy) {
  if (!python(R"(
arrays = {"a": np.arange(12, dtype="f4").reshape(3, 4), "weights/é": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
          "ids": np.arange(5), "many": np.arange(1 << 20, dtype="f4")}
np.savez("stored.npz", **arrays)
np.savez_compressed("deflated.npz", **arrays)
np.savez("none.npz")
)"))
    GTEST_SKIP() << "without numpy";
  for (const char* name : {"stored.npz", "deflated.npz"}) {
    const auto loaded = load_npz(folder / name);
    EXPECT_EQ(loaded.size(), 4U);
    EXPECT_TRUE(identical(loaded.at("a"), arange(12).reshape({3, 4})));
    EXPECT_TRUE(identical(loaded.at("weights/é"), arange(6, DType::f64).reshape({2, 3})));
    EXPECT_TRUE(identical(loaded.at("ids"), arange(5, DType::i32)));
    EXPECT_TRUE(identical(loaded.at("many"), arange(1 << 20)));
  }
  EXPECT_TRUE(load_npz(folder / "none.npz").empty());
}

TEST_F(Npy, RefusesBF16) {
  const std::string message = "save_npy: NumPy has no bf16; convert to f32";
  EXPECT_EQ(message_of([&] { save_npy(file, ones({2}, DType::bf16)); }), message);
  EXPECT_EQ(message_of([&] { save_npz(file, {{"x", ones({2}, DType::bf16)}}); }), message);
  EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(Npy, RejectsWhatIsNone) {
  EXPECT_EQ(complaint(), "cannot be opened: No such file or directory");
  write("\x93NUMPY\1"s);
  EXPECT_EQ(complaint(), "expected at least 10 bytes but there are 7");
  write("\x93NUMPX\1\0\0\0"s);
  EXPECT_EQ(complaint(), "is not a .npy file: it must begin with \\ufffdNUMPY");
  write("\x93NUMPY\4\0\0\0"s);
  EXPECT_EQ(complaint(), "the format must be 1.0, 2.0 or 3.0 but is 4.0");
  write("\x93NUMPY\2\0\0\0"s);
  EXPECT_EQ(complaint(), "expected at least 12 bytes but there are 10");
  write("\x93NUMPY\1\0\5\0{}"s);
  EXPECT_EQ(complaint(), "the header must take at most 2 bytes but takes 5");
  write("\x93NUMPY\2\0\xff\xff\xff\xff"s + std::string(100, ' '));
  EXPECT_EQ(complaint(), "the header must take at most 100 bytes but takes 4294967295");
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(complaint(), "must be a regular file but is something else");
}

TEST_F(Npy, TakesHeadersOfAMebibyteAtMost) {
  const auto complaint_about_length = [&](std::uint32_t length) {
    std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}";
    header.resize(length, ' ');
    write("\x93NUMPY\2\0"s + std::string(reinterpret_cast<const char*>(&length), 4) + header + std::string(4, '\0'));
    return complaint();
  };
  EXPECT_EQ(complaint_about_length(1 << 20), "none");
  EXPECT_EQ(complaint_about_length((1 << 20) + 1), "the header must take at most 1048576 bytes but takes 1048577");
}

TEST_F(Npy, RejectsHeadersThatAreNone) {
  const std::string good = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  EXPECT_EQ(complaint_about(good, 4), "none");
  EXPECT_EQ(complaint_about("{\"shape\":(1L ,),\n'descr':'<f4','fortran_order':True}  \n", 4), "none");
  for (const char* bad :
       {"", "{}", "{'descr': '<f4', 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)",
        "{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "{'descr': '<f4', 'fortran_order': False, 'shape': (1)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
        "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "{'descr': '<f4, 'fortran_order': False}",
        "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'more': 1}",
        "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} {}"})
    EXPECT_THAT(complaint_about(bad, 4), testing::StartsWith("the header must be {'descr': '<f4', ")) << bad;
  EXPECT_LT(complaint_about("{'" + std::string(9999, '\n'), 4).size(), 250U);
}

TEST_F(Npy, RejectsTypesShapesAndSizesThatDoNotFit) {
  const auto complaint_about_array = [&](const std::string& descr, const std::string& shape, std::size_t bytes) {
    return complaint_about("{'descr': '" + descr + "', 'fortran_order': False, 'shape': " + shape + "}", bytes);
  };
  for (const char* descr : {">f4", "|O", "<c8", "<U3", "<f16", "f4"})
    EXPECT_EQ(
        complaint_about_array(descr, "(1,)", 4),
        "dtype must be one of <f4, <f8, <i4, <f2, |b1, |i1, |u1, <i2, <u2, <u4, <i8, <u8 but is '"s + descr + "'");
  EXPECT_EQ(complaint_about_array("<f4", "(2, 3)", 23), "<f4 [2, 3] must take 24 bytes but there are 23");
  EXPECT_EQ(complaint_about_array("<f4", "(2, 3)", 25), "<f4 [2, 3] must take 24 bytes but there are 25");
  EXPECT_EQ(complaint_about_array("<f4", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", 4), "shape must have at most 8 axes but has 9");
  EXPECT_EQ(complaint_about_array("<f4", "(1, 1, 1, 1, 1, 1, 1, 1)", 4), "none");
  for (const char* shape : {"4611686018427387905, 4", "0, 4294967296, 4294967296", "4294967296, 1, 4294967296, 0"})
    EXPECT_EQ(complaint_about_array("<f4", "("s + shape + ")", 4),
              "shape must have at most 2^59 elements but is ["s + shape + "]");
  EXPECT_EQ(complaint_about_array("<f4", "(576460752303423488,)", 4),
            "<f4 [576460752303423488] must take 2305843009213693952 bytes but there are 4");
  EXPECT_EQ(complaint_about_array("<f4", "(576460752303423489,)", 4),
            "shape must have at most 2^59 elements but is [576460752303423489]");
  write(with_header("{'descr': '<i8', 'fortran_order': False, 'shape': ()}") + "\0\0\0\x80\0\0\0\0"s);
  EXPECT_EQ(complaint(), "integers must fit 32 bits but one is 2147483648");
}

TEST_F(Npy, RejectsEveryTruncation) {
  save_npy(file, arange(6));
  for (std::size_t size = fs::file_size(file); size-- > 0;) {
    fs::resize_file(file, size);
    EXPECT_NE(complaint(), "none") << size;
  }
}

TEST_F(Npy, RejectsDamagedArchives) {
  save_npz(npz, {{"a", arange(50)}, {"b", scalar(1)}}, {.compressed = true});
  const std::string whole = read(npz);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(npz, std::ios::binary) << whole.substr(0, size);
    EXPECT_NE(complaint_of_npz(), "none") << size;
  }
  int refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at) {  // anything but a FileError fails
    std::string flipped = whole;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << at % 8));
    std::ofstream(npz, std::ios::binary) << flipped;
    refused += complaint_of_npz() != "none" ? 1 : 0;
  }
  EXPECT_GT(refused, static_cast<int>(whole.size()) * 3 / 4);  // the others are of times, versions and names
}

TEST_F(Npy, RejectsArchivesOfOtherThings) {
  std::ofstream(npz) << "no archive";
  EXPECT_EQ(complaint_of_npz(), "Not a zip archive");
  if (!python(R"(
import zipfile, io
def archive(name, entries, method):
    with zipfile.ZipFile(name, "w", method) as z:
        for entry, data in entries: z.writestr(entry, data)
array = io.BytesIO()
np.save(array, np.zeros(3))
archive("text.npz", [("readme.txt", b"text")], zipfile.ZIP_STORED)
archive("unnamed.npz", [(".npy", array.getvalue())], zipfile.ZIP_STORED)
archive("bzip2.npz", [("a.npy", array.getvalue())], zipfile.ZIP_BZIP2)
archive("short.npz", [("a.npy", array.getvalue()[:-1])], zipfile.ZIP_DEFLATED)
archive("objects.npz", [("a.npy", b"\x93NUMPY\1\0")], zipfile.ZIP_STORED)
)"))
    GTEST_SKIP() << "without numpy";
  const auto message = [&](const std::string& name) {
    return message_of([&] { load_npz(folder / name); }).substr(("load_npz: " + (folder / name).string() + ": ").size());
  };
  EXPECT_EQ(message("text.npz"), "'readme.txt': its name must end with .npy");
  EXPECT_EQ(message("unnamed.npz"), "'.npy': its name must end with .npy");
  EXPECT_EQ(message("bzip2.npz"), "'a.npy': must be stored or deflated, and not encrypted");
  EXPECT_EQ(message("short.npz"), "'a.npy': <f8 [3] must take 24 bytes but there are 23");
  EXPECT_EQ(message("objects.npz"), "'a.npy': expected at least 10 bytes but there are 8");
}

TEST_F(Npy, RefusesEntriesThatShareTheirBytes) {
  // Each local header has an extra field that covers the headers after it, so that all precede the same 8 kB.
  if (!python(R"(
import struct, zlib
array = b"\x93NUMPY\1\0" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2016,)}".ljust(118) + bytes(8064)
def entry(i, left):
    name, header = b"%d.npy" % i, struct.pack("<HHHHHIII", 20, 0, 0, 0, 33, zlib.crc32(array), len(array), len(array))
    extra = struct.pack("<HH", 0x6666, 39 * left)
    central = b"PK\1\2\x14\0" + header + struct.pack("<HHHHHII", 5, 0, 0, 0, 0, 0, 39 * i) + name
    return b"PK\3\4" + header + struct.pack("<HH", 5, 4 + 39 * left) + name + extra, central
for count in 8, 9:
    entries = [entry(i, count - 1 - i) for i in range(count)]
    local, central = b"".join(e[0] for e in entries) + array, b"".join(e[1] for e in entries)
    end = struct.pack("<HHHHIIH", 0, 0, count, count, len(central), len(local), 0)
    open(f"{count}.npz", "wb").write(local + central + b"PK\5\6" + end)
)"))
    GTEST_SKIP() << "without numpy";
  EXPECT_EQ(load_npz(folder / "8.npz").size(), 8u);
  EXPECT_EQ(message_of([&] { load_npz(folder / "9.npz"); }),
            fmt::format("load_npz: {}: a size of {} bytes allows 65536 compressed bytes but there are 73728",
                        (folder / "9.npz").string(), fs::file_size(folder / "9.npz")));
}

TEST_F(Npy, RefusesEntriesOfAnotherSizeThanTheySay) {
  if (!python(R"(
import struct, zlib
array = (b"\x93NUMPY\1\0" + struct.pack("<H", 118) + b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}".ljust(118)
         + bytes(12))
encoder = zlib.compressobj(9, zlib.DEFLATED, -15)
deflated = encoder.compress(array) + encoder.flush()
def archive(name, method, data, size):
    header = struct.pack("<HHHHHIII", 20, 0, method, 0, 33, zlib.crc32(array), len(data), size)
    local = b"PK\3\4" + header + struct.pack("<HH", 5, 0) + b"a.npy" + data
    central = b"PK\1\2\x14\0" + header + struct.pack("<HHHHHII", 5, 0, 0, 0, 0, 0, 0) + b"a.npy"
    end = struct.pack("<HHHHIIH", 0, 0, 1, 1, len(central), len(local), 0)
    open(name + ".npz", "wb").write(local + central + b"PK\5\6" + end)
archive("longer_stored", 0, array, len(array) - 4)
archive("longer_deflated", 8, deflated, len(array) - 4)
archive("most", 8, deflated, 1032 * len(deflated) + 1031)
archive("more", 8, deflated, 1032 * len(deflated) + 1032)
open("deflated", "wb").write(deflated)
)"))
    GTEST_SKIP() << "without numpy";
  const auto message = [&](const std::string& name) {
    const std::string path = (folder / (name + ".npz")).string();
    return message_of([&] { load_npz(path); }).substr(("load_npz: " + path + ": 'a.npy': ").size());
  };
  EXPECT_THAT(
      message("longer_stored"),
      testing::AnyOf("is longer than its size", HasSubstr("sizes don't match")));  // 1.12 of libzip says it itself
  EXPECT_EQ(message("longer_deflated"), "is longer than its size");
  const std::uint64_t bytes = fs::file_size(folder / "deflated"), most = 1032 * bytes + 1031;
  EXPECT_EQ(message("most"), fmt::format("<f4 [2] must take 8 bytes but there are {}", most - 128));
  EXPECT_EQ(message("more"), fmt::format("{} bytes cannot be {} when inflated", bytes, most + 1));
}

TEST_F(Npy, KeepsTheOldFileWhenTheNewOneIsRejected) {
  save_npz(npz, some_tensors());
  const std::string before = read(npz);
  EXPECT_EQ(message_of([&] { save_npz(npz, {{"x", Tensor()}}); }), "save_npz: array 'x' is undefined");
  EXPECT_EQ(message_of([&] { save_npz(npz, {{"", scalar(1)}}); }), "save_npz: the name of an array must not be empty");
  EXPECT_EQ(message_of([&] { save_npz(npz, {{"\xff", scalar(1)}}); }), "save_npz: array '\\ufffd': Invalid argument");
  EXPECT_EQ(message_of([&] { save_npy(npz, Tensor()); }), "save_npy: the tensor is undefined");
  EXPECT_EQ(read(npz), before);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder), {}), 1);
}

}  // namespace
}  // namespace braid::npy_test

#include <braid/core/files/safetensors.h>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

#include <braid/core/files/detail/safetensors_header.h>
#include <tests/support.h>

namespace braid::safetensors_test {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::IsEmpty;

/// Each test has an empty folder of its own.
struct Safetensors : testing::Test {
  Safetensors() { fs::create_directories(folder); }
  ~Safetensors() override { fs::remove_all(folder); }

  std::string read() const { return (std::stringstream() << std::ifstream(file, std::ios::binary).rdbuf()).str(); }
  void write(const std::string& bytes) const { std::ofstream(file, std::ios::binary) << bytes; }

  /// A file with this header and number of data bytes.
  void write_header(const std::string& header, std::size_t data_bytes) const {
    const std::uint64_t length = header.size();
    write(std::string(reinterpret_cast<const char*>(&length), 8) + header + std::string(data_bytes, '\0'));
  }

  /// A file of one tensor x of these elements.
  template <class T>
  void write_elements(const char* dtype, const std::vector<T>& values) const {
    const std::size_t bytes = values.size() * sizeof(T);
    write_header(
        fmt::format(R"({{"x":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", dtype, values.size(), bytes), 0);
    std::ofstream(file, std::ios::binary | std::ios::app)
        .write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(bytes));
  }

  /// What loading the file complains about, without the path.
  std::string complaint() const {
    const std::string prefix = "load_safetensors: " + file.string() + ": ";
    try {
      load_safetensors(file);
    } catch (const FileError& error) {
      EXPECT_THAT(error.what(), testing::StartsWith(prefix));
      return std::string(error.what()).substr(prefix.size());
    }
    return "none";
  }
  std::string complaint_about(const std::string& header, std::size_t data_bytes) const {
    write_header(header, data_bytes);
    return complaint();
  }

  const std::string test = testing::UnitTest::GetInstance()->current_test_info()->name();
  const fs::path folder = fs::path(testing::TempDir()) / ("braid_safetensors_" + test);
  const fs::path file = folder / "data.safetensors";
};

std::map<std::string, Tensor> some_tensors() {
  return {{"ids", Tensor::of<std::int32_t>({3}, {-1, 0, std::numeric_limits<std::int32_t>::max()})},
          {"block.0.weight", Tensor::of<float>({2, 1, 2}, {1.5F, -0.0F, INFINITY, 1e-45F})},
          {"x", Tensor::of<double>({2}, {0.1, -1e308})},
          {"scalar", scalar(3, DType::f64)},
          {"nothing", Tensor({4, 0, 2}, DType::f32)}};
}

TEST_F(Safetensors, ReadsWhatItWrote) {
  const auto tensors = some_tensors();
  save_safetensors(file, tensors, {{"step", "12"}, {"text", "line\n\"quoted\" é"}});
  const SafetensorsFile loaded = load_safetensors(file);
  EXPECT_EQ(loaded.metadata, (std::map<std::string, std::string>{{"step", "12"}, {"text", "line\n\"quoted\" é"}}));
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) EXPECT_TRUE(identical(loaded.tensors.at(name), tensor)) << name;
}

TEST_F(Safetensors, WritesViewsRowMajor) {
  const Tensor matrix = Tensor::of<float>({2, 2}, {1, 2, 3, 4});
  save_safetensors(file, {{"t", matrix.transpose()}, {"row", matrix.select(0, 1)}});
  const SafetensorsFile loaded = load_safetensors(file);
  EXPECT_THAT(loaded.tensors.at("t").to_vector<float>(), ElementsAre(1, 3, 2, 4));
  EXPECT_THAT(loaded.tensors.at("row").to_vector<float>(), ElementsAre(3, 4));
}

TEST_F(Safetensors, ReadsAnEmptyFileOfTensors) {
  save_safetensors(file, {});
  EXPECT_EQ(read(), std::string("\x08\0\0\0\0\0\0\0{}      ", 16));
  EXPECT_THAT(load_safetensors(file).tensors, IsEmpty());
}

TEST_F(Safetensors, WritesSortedNamesAndAlignedData) {
  save_safetensors(file, {{"b", scalar(1, DType::f64)}, {"a", scalar(1, DType::f32)}});
  const std::string header =
      R"({"a":{"data_offsets":[8,12],"dtype":"F32","shape":[]},"b":{"data_offsets":[0,8],"dtype":"F64","shape":[]}})";
  EXPECT_THAT(read().substr(8), testing::StartsWith(header));
  EXPECT_EQ(read().size() % 8, 4);  // 8 + header + 12
}

TEST_F(Safetensors, ReadsIntegersThatFit) {
  const auto read_as = [&]<class T>(const char* dtype, const std::vector<T>& values) {
    write_elements(dtype, values);
    const Tensor ids = load_safetensors(file).tensors.at("x");
    EXPECT_EQ(ids.dtype(), DType::i32);
    return ids.to_vector<std::int32_t>();
  };
  EXPECT_THAT(read_as("I64", std::vector{std::int64_t{-5}, std::int64_t{2147483647}}), ElementsAre(-5, 2147483647));
  EXPECT_THAT(read_as("U64", std::vector{std::uint64_t{0}, std::uint64_t{2147483647}}), ElementsAre(0, 2147483647));
  EXPECT_THAT(read_as("U32", std::vector{7U}), ElementsAre(7));
  EXPECT_THAT(read_as("I16", std::vector{std::int16_t{-32768}, std::int16_t{3}}), ElementsAre(-32768, 3));
  EXPECT_THAT(read_as("U16", std::vector{std::uint16_t{65535}}), ElementsAre(65535));
  EXPECT_THAT(read_as("I8", std::vector{std::int8_t{-128}}), ElementsAre(-128));
  EXPECT_THAT(read_as("U8", std::vector{std::uint8_t{255}}), ElementsAre(255));
  EXPECT_THAT(read_as("BOOL", std::vector{std::uint8_t{0}, std::uint8_t{1}}), ElementsAre(0, 1));
}

TEST_F(Safetensors, RejectsIntegersThatDoNotFit) {
  write_elements("I64", std::vector{std::int64_t{1} << 31});
  EXPECT_EQ(complaint(), "tensor 'x': I64 values must fit 32 bits but one is 2147483648");
  write_elements("U64", std::vector{~std::uint64_t{0}});
  EXPECT_EQ(complaint(), "tensor 'x': U64 values must fit 32 bits but one is 18446744073709551615");
  write_elements("U32", std::vector{std::uint32_t{1} << 31});
  EXPECT_EQ(complaint(), "tensor 'x': U32 values must fit 32 bits but one is 2147483648");
}

/// The number that a half means, by the definition.
double half_value(std::uint32_t bits) {
  const int exponent = static_cast<int>(bits >> 10 & 31);
  const double fraction = (bits & 1023) / 1024.0, sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31) return fraction == 0 ? sign * INFINITY : NAN;
  return sign * (exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15));
}

TEST_F(Safetensors, ReadsEveryHalf) {
  std::vector<std::uint16_t> all(65536);
  for (std::size_t bits = 0; bits < all.size(); ++bits) all[bits] = static_cast<std::uint16_t>(bits);
  all.insert(all.end(), 5, 0x3c00);  // more than one chunk
  write_elements("F16", all);
  const std::vector<float> halves = load_safetensors(file).tensors.at("x").to_vector<float>();
  write_elements("BF16", all);
  const std::vector<float> upper = load_safetensors(file).tensors.at("x").to_vector<float>();
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto expected = static_cast<float>(half_value(all[i]));
    if (std::isnan(expected))
      EXPECT_TRUE(std::isnan(halves[i])) << i;
    else
      EXPECT_EQ(std::bit_cast<std::uint32_t>(halves[i]), std::bit_cast<std::uint32_t>(expected)) << i;
    EXPECT_EQ(std::bit_cast<std::uint32_t>(upper[i]), std::uint32_t{all[i]} << 16) << i;
  }
}

TEST_F(Safetensors, ListsWhatItSkips) {
  write_header(
      R"({"a":{"dtype":"F8_E4M3","shape":[3],"data_offsets":[0,3]},)"
      R"("b":{"dtype":"F32","shape":[1],"data_offsets":[3,7]},"c":{"dtype":"C64","shape":[1],"data_offsets":[7,15]},)"
      R"("d":{"dtype":"F4","shape":[2,3],"data_offsets":[15,18]},)"
      R"("e":{"dtype":"F6_E2M3","shape":[4],"data_offsets":[18,21]}})",
      21);
  const SafetensorsFile loaded = load_safetensors(file);
  EXPECT_EQ(loaded.tensors.size(), 1U);
  EXPECT_EQ(loaded.tensors.at("b").item(), 0);
  EXPECT_EQ(loaded.skipped,
            (std::map<std::string, std::string>{{"a", "F8_E4M3"}, {"c", "C64"}, {"d", "F4"}, {"e", "F6_E2M3"}}));
}

TEST_F(Safetensors, RoundsTheBytesOfATensorUp) {
  for (const detail::StoredTypeFacts& type : detail::kStoredTypes)
    for (std::uint64_t count = 1; count < 18; ++count) {
      const std::uint64_t expected = (count * type.bits + 7) / 8;
      for (const std::uint64_t bytes : {expected - 1, expected, expected + 1}) {
        const std::string header =
            fmt::format(R"({{"x":{{"dtype":"{}","shape":[{}],"data_offsets":[0,{}]}}}})", type.name, count, bytes);
        const std::string message = message_of([&] { detail::parse_safetensors_header("here", header, bytes); });
        EXPECT_EQ(message == "nothing was thrown", bytes == expected) << header;
      }
    }
}

TEST_F(Safetensors, RejectsAFileThatIsNotThere) {
  EXPECT_EQ(complaint(), "cannot be opened: No such file or directory");
}

TEST_F(Safetensors, RejectsWhatIsNoRegularFileWithoutWaitingForIt) {
  fs::create_directory(file);
  EXPECT_EQ(complaint(), "must be a regular file but is something else");
  fs::remove(file);
  ASSERT_EQ(mkfifo(file.c_str(), 0600), 0);
  EXPECT_EQ(complaint(), "must be a regular file but is something else");
  EXPECT_EQ(message_of([] { load_safetensors("/dev/zero"); }),
            "load_safetensors: /dev/zero: must be a regular file but is something else");
}

TEST_F(Safetensors, RejectsABadHeaderLength) {
  write("1234567");
  EXPECT_EQ(complaint(), "expected 8 bytes of header length but the file has 7 bytes");
  write(std::string("\x03\0\0\0\0\0\0\0{}", 10));
  EXPECT_EQ(complaint(), "the header length must be at most 2 in a file of 10 bytes but is 3");
  write(std::string(8, '\xff') + "{}");
  EXPECT_EQ(complaint(), "the header length must be at most 2 in a file of 10 bytes but is 18446744073709551615");
}

TEST_F(Safetensors, RejectsWhatIsNotAJsonObject) {
  EXPECT_EQ(complaint_about("", 0), "the header must start with '{'");
  EXPECT_EQ(complaint_about("[]", 0), "the header must start with '{'");
  EXPECT_EQ(complaint_about(" {}", 0), "the header must start with '{'");
  EXPECT_EQ(complaint_about("{\"x\": ", 0), "the header must be JSON but has a parse error at byte 7: '\\\"x\\\": '");
  EXPECT_EQ(complaint_about("{} {}", 0), "the header must be JSON but has a parse error at byte 4: '{} {'");
  EXPECT_EQ(complaint_about("{\"\xff\": 1}", 0),
            "the header must be JSON but has a parse error at byte 3: '\\\"\\ufffd'");
  EXPECT_EQ(complaint_about("{\"x\":1e999}", 0), "the header must be JSON but has a parse error at byte 10: '1e999'");
  EXPECT_EQ(complaint_about("{\"x\":" + std::string(100'000, '['), 0),
            "the header: must nest at most 64 deep but does so deeper at byte 68");
}

TEST_F(Safetensors, RejectsDuplicateKeys) {
  const std::string x = R"("x":{"dtype":"F32","shape":[1],"data_offsets":[0,4]})";
  EXPECT_EQ(complaint_about("{" + x + "}", 4), "none");
  EXPECT_EQ(complaint_about("{" + x + "," + x + "}", 4), "the header has the key 'x' twice");
  EXPECT_EQ(complaint_about(R"({"x":{"dtype":"F32","dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4),
            "the header has the key 'dtype' twice");
  EXPECT_EQ(complaint_about(R"({"__metadata__":{"a":"1","a":"2"}})", 0), "the header has the key 'a' twice");
}

TEST_F(Safetensors, RejectsMetadataThatIsNotText) {
  EXPECT_EQ(complaint_about(R"({"__metadata__":[]})", 0), "__metadata__ must be an object but is []");
  EXPECT_EQ(complaint_about(R"({"__metadata__":{"a":1}})", 0), "__metadata__: 'a' must be a string but is 1");
}

TEST_F(Safetensors, RejectsIncompleteTensors) {
  const std::string expected = "tensor 'x': expected dtype, shape and data_offsets but got ";
  for (const std::string value : {"1", "null", "true"})
    EXPECT_EQ(complaint_about("{\"x\":" + value + "}", 0), expected + value);
  EXPECT_EQ(complaint_about(R"({"x":{"dtype":"F32","shape":[1]}})", 4), expected + R"({"dtype":"F32","shape":[1]})");
}

TEST_F(Safetensors, RejectsUnknownTypes) {
  EXPECT_EQ(complaint_about(R"({"x":{"dtype":"F3","shape":[1],"data_offsets":[0,2]}})", 2),
            R"(tensor 'x': dtype must be one of the format's, as F32, but is "F3")");
}

TEST_F(Safetensors, RejectsBadShapes) {
  const auto complaint_about_shape = [&](const std::string& shape) {
    return complaint_about(R"({"x":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,4]}})", 4);
  };
  EXPECT_EQ(complaint_about_shape("[1]"), "none");
  EXPECT_EQ(complaint_about_shape("1"), "tensor 'x': shape must hold non-negative integers but is 1");
  EXPECT_EQ(complaint_about_shape("[-1]"), "tensor 'x': shape must hold non-negative integers but is [-1]");
  EXPECT_EQ(complaint_about_shape("[1.0]"), "tensor 'x': shape must hold non-negative integers but is [1.0]");
  EXPECT_EQ(complaint_about_shape("[2]"), "tensor 'x': F32 [2] must take 8 bytes but data_offsets span 4");
  EXPECT_EQ(complaint_about_shape("[0]"), "tensor 'x': F32 [0] must take 0 bytes but data_offsets span 4");
  EXPECT_EQ(complaint_about_shape("[1,1,1,1,1,1,1,1,1]"), "tensor 'x': shape must have at most 8 axes but has 9");
  for (const char* shape : {"4611686018427387905, 4", "0, 4294967296, 4294967296", "4294967296, 4294967296, 0"})
    EXPECT_EQ(complaint_about_shape(fmt::format("[{}]", shape)),
              fmt::format("tensor 'x': shape must have at most 2^59 elements but is [{}]", shape));
  EXPECT_THAT(complaint_about_shape("[576460752303423488]"), testing::HasSubstr("must take 2305843009213693952 bytes"));
  for (const char* shape : {"576460752303423489", "0, 576460752303423489", "1152921504606846976"})
    EXPECT_EQ(complaint_about_shape(fmt::format("[{}]", shape)),
              fmt::format("tensor 'x': shape must have at most 2^59 elements but is [{}]", shape));
}

TEST_F(Safetensors, RejectsBadOffsets) {
  const auto complaint_about_offsets = [&](const std::string& offsets) {
    return complaint_about(R"({"x":{"dtype":"F32","shape":[1],"data_offsets":)" + offsets + "}}", 4);
  };
  EXPECT_EQ(complaint_about_offsets("[0,4]"), "none");
  EXPECT_EQ(complaint_about_offsets("[0,-4]"),
            "tensor 'x': data_offsets must hold non-negative integers but is [0,-4]");
  for (const char* offsets : {"4, 0", "0", "0, 4, 4", "0, 5", "4, 8"})
    EXPECT_EQ(complaint_about_offsets(fmt::format("[{}]", offsets)),
              fmt::format("tensor 'x': data_offsets must be [begin, end] within 4 bytes but are [{}]", offsets));
}

TEST_F(Safetensors, RejectsGapsAndOverlaps) {
  const auto complaint_about_second = [&](int begin) {
    return complaint_about(fmt::format(R"({{"a":{{"dtype":"F32","shape":[2],"data_offsets":[0,8]}},)"
                                       R"("b":{{"dtype":"F32","shape":[1],"data_offsets":[{},{}]}}}})",
                                       begin, begin + 4),
                           12);
  };
  EXPECT_EQ(complaint_about_second(8), "none");
  EXPECT_EQ(complaint_about_second(4),
            "tensor 'b': data must begin at byte 8, where the tensor before ends, but begins at 4");
  EXPECT_EQ(complaint_about(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8),
            "tensor 'b': data must begin at byte 0, where the tensor before ends, but begins at 4");
  EXPECT_EQ(complaint_about(R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 5),
            "the tensors must fill the 5 bytes after the header but end at 4");
  EXPECT_EQ(complaint_about("{}", 1), "the tensors must fill the 1 bytes after the header but end at 0");
}

TEST_F(Safetensors, QuotesALineAtMost) {
  std::string name = "two\\nlines and ", repeated;
  for (int i = 0; i < 1000; ++i) name += "\u00e9", repeated += "1,";
  const auto header = [](const std::string& name, const std::string& dtype, const std::string& shape,
                         const std::string& offsets) {
    return fmt::format(R"({{"{}":{{"dtype":{},"shape":[{}],"data_offsets":[{}]}}}})", name, dtype, shape, offsets);
  };
  for (const std::string& text :
       {header(name, "1", "1", "0,4"), header("x", '"' + name + '"', "1", "0,4"), header("x", "1", repeated + "1", "0"),
        header("x", R"("F32")", repeated + "-1", "0"), header("x", R"("F32")", "1", repeated + "1"),
        header("x", R"("F32")", repeated + "1", "0"), "{\"" + name + "\":" + name,
        "{\"" + name + "\":1,\"" + name + "\":1}", "{\"__metadata__\":{\"" + name + "\":[" + repeated + "1]}}",
        "{\"__metadata__\":[" + repeated + "1]}", "{\"x\":\"" + name, "{\"x\":[" + repeated + "1]}"}) {
    const std::string message = complaint_about(text, 0);
    EXPECT_NE(message, "none");
    EXPECT_LT(message.size(), 250U) << message;
    EXPECT_TRUE(std::ranges::all_of(message, [](char c) { return ' ' <= c && c <= '~'; })) << message;
  }
}

TEST_F(Safetensors, ReadsManyTensors) {
  // Quadratic, this takes minutes.
  std::map<std::string, Tensor> tensors;
  for (int i = 0; i < 100'000; ++i) tensors.emplace(std::to_string(i), scalar(i));
  save_safetensors(file, tensors);
  const SafetensorsFile loaded = load_safetensors(file);
  ASSERT_EQ(loaded.tensors.size(), tensors.size());
  EXPECT_EQ(loaded.tensors.at("99999").item(), 99999);
}

TEST_F(Safetensors, RejectsEveryTruncation) {
  save_safetensors(file, some_tensors(), {{"key", "value"}});
  const std::string whole = read();
  for (std::size_t size = whole.size(); size-- > 0;) {
    fs::resize_file(file, size);
    EXPECT_NE(complaint(), "none") << size;
  }
  write(whole + '\0');
  EXPECT_NE(complaint(), "none");
}

std::string flipped(std::string bytes, std::size_t bit) {
  bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << bit % 8));
  return bytes;
}

// Anything but a FileError fails these two; a flip within a name or an element is no violation.

TEST_F(Safetensors, SurvivesEveryFlippedBitOfTheLength) {
  save_safetensors(file, some_tensors(), {{"key", "value"}});
  const std::string whole = read();
  for (std::size_t bit = 0; bit < 64; ++bit) {
    write(flipped(whole, bit));
    EXPECT_NE(complaint(), "none") << bit;
  }
}

TEST_F(Safetensors, SurvivesEveryFlippedBitOfTheHeader) {
  save_safetensors(file, some_tensors(), {{"key", "value"}});
  const std::string whole = read();
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data(), sizeof(length));
  const std::string header = whole.substr(8, length);
  int rejected = 0;
  for (std::size_t bit = 0; bit < 8 * header.size(); ++bit) {
    try {
      detail::parse_safetensors_header("here", flipped(header, bit), whole.size() - 8 - length);
    } catch (const FileError&) {
      ++rejected;
    }
  }
  EXPECT_GT(rejected, 4 * static_cast<int>(length));
}

TEST_F(Safetensors, KeepsTheOldFileWhenTheNewOneIsRejected) {
  save_safetensors(file, some_tensors());
  const std::string before = read();
  const auto complaint_about_saving = [&](const std::string& name, const Tensor& tensor) {
    try {
      save_safetensors(file, {{name, tensor}});
    } catch (const ValueError& error) {
      return std::string(error.what());
    }
    return std::string("none");
  };
  EXPECT_EQ(complaint_about_saving("x", Tensor()), "save_safetensors: tensor 'x' is undefined");
  EXPECT_EQ(complaint_about_saving("\xff", scalar(1)), "save_safetensors: names and metadata must be UTF-8");
  EXPECT_EQ(complaint_about_saving("__metadata__", scalar(1)),
            "save_safetensors: a tensor must not be named __metadata__");
  EXPECT_EQ(read(), before);
}

}  // namespace
}  // namespace braid::safetensors_test

#include "../../../apps/common/corpus.h"

#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>

#include <apps/common/read_file.h>
#include <braid/core/error.h>
#include <braid/core/files/checksum.h>
#include <braid/core/utf8.h>
#include <tests/support.h>

namespace braid::apps {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using Ids = std::vector<std::int32_t>;

const fs::path kTokenizer = BRAID_SOURCE_DIR "/tests/golden/models/bpe/tokenizer.json";

/// A folder that is gone after the test.
struct CorpusFiles : testing::Test {
  CorpusFiles() { fs::create_directories(folder); }
  ~CorpusFiles() override { fs::remove_all(folder); }

  fs::path write(const std::string& name, const std::string& content) {
    std::ofstream(folder / name, std::ios::binary) << content;
    return folder / name;
  }
  template <class T>
  fs::path write(const std::string& name, const std::vector<T>& values) {
    return write(name, std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)));
  }
  /// As llm.c writes it.
  template <class T>
  fs::path write_with_header(Ids header, const std::vector<T>& ids) {
    header.resize(256);
    std::string content(reinterpret_cast<const char*>(header.data()), 1024);
    content.append(reinterpret_cast<const char*>(ids.data()), ids.size() * sizeof(T));
    return write("header.bin", content);
  }
  std::string refusal(const fs::path& path) {
    return message_of([&] { TokenFile{path}; });
  }

  const fs::path folder =
      fs::path(testing::TempDir()) /
      (std::string("braid_corpus_") + testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::vector<std::uint16_t> counting(int count) {
  std::vector<std::uint16_t> ids;
  for (int i = 0; i < count; ++i) ids.push_back(static_cast<std::uint16_t>(7 * i % 1000));
  return ids;
}

Ids all_of(const TokenFile& file) {
  Ids ids(static_cast<std::size_t>(file.size()));
  EXPECT_EQ(file.copy(0, file.size(), ids.data()), ids.data() + ids.size());
  return ids;
}

TEST_F(CorpusFiles, OfTokensHaveAHeaderOrNone) {
  const std::vector<std::uint16_t> narrow{5, 0, 65535, 7};
  const std::vector<std::uint32_t> wide{5, 128255, 0};
  const TokenFile plain(write("plain.bin", narrow)), gpt2(write_with_header({20240520, 1, 4}, narrow));
  EXPECT_THAT(all_of(plain), ElementsAre(5, 0, 65535, 7));
  EXPECT_THAT(all_of(gpt2), ElementsAre(5, 0, 65535, 7));
  EXPECT_EQ(gpt2.highest_id(), 65535);
  const TokenFile llama(write_with_header({20240801, 7, 3}, wide));
  EXPECT_THAT(all_of(llama), ElementsAre(5, 128255, 0));
  EXPECT_EQ(llama.highest_id(), 128255);
  Ids two(2);
  llama.copy(1, 2, two.data());
  EXPECT_THAT(two, ElementsAre(128255, 0));
}

TEST_F(CorpusFiles, OfTokensThatAreNoneAreRefused) {
  const std::vector<std::uint16_t> ids{1, 2, 3};
  EXPECT_THAT(refusal(folder / "none.bin"), HasSubstr("none.bin: cannot be opened: No such file"));
  EXPECT_THAT(refusal(folder), HasSubstr(": must be a regular file"));
  EXPECT_THAT(refusal(write("empty.bin", "")), HasSubstr("empty.bin: has no tokens"));
  EXPECT_THAT(refusal(write("odd.bin", "123")), HasSubstr("odd.bin: 1 tokens must take 2 bytes but the file has 3"));
  EXPECT_THAT(refusal(write_with_header({20240520, 2, 3}, ids)),
              HasSubstr("version 2 of llm.c's token files must be 1"));
  EXPECT_THAT(refusal(write_with_header({20240520, 1, 4}, ids)),
              HasSubstr("4 tokens must take 1032 bytes but the file has 1030"));
  EXPECT_THAT(refusal(write_with_header({20240801, 7, 3}, ids)),
              HasSubstr("3 tokens must take 1036 bytes but the file has 1030"));
  EXPECT_THAT(refusal(write_with_header({20240520, 1, -3}, ids)), HasSubstr("-3 tokens must take 1024 bytes"));
  EXPECT_THAT(refusal(write_with_header({20240520, 1, 0}, Ids{})), HasSubstr("has no tokens"));
  EXPECT_THAT(refusal(write("short.bin", Ids{20240520})), HasSubstr("version 0"));
}

TEST_F(CorpusFiles, OfTokensDecideAVocabularyInProportionToTheirSize) {
  std::vector<std::uint32_t> ids(1000, 7);
  ids[500] = 262143;
  const auto file = [&] { return write_with_header({20240801, 7, 1000}, ids); };
  EXPECT_EQ(read_corpus(file(), {}, 8, "").vocabulary().size(), 262144);
  ids[500] = 262144;
  EXPECT_THAT(message_of([&] { read_corpus(file(), {}, 8, ""); }),
              HasSubstr("1000 ids allow ids below 262144 but there is 262144; give the --tokenizer that made it"));
}

TEST_F(CorpusFiles, OfTokensAreRefusedOnceTheyAreWrittenTo) {
  const auto opened = [&] {
    const fs::path path = write("ids.bin", counting(200));
    fs::last_write_time(path, fs::last_write_time(path) - std::chrono::hours(1));
    return std::pair(path, TokenFile(path));
  };
  Ids some(4);
  const auto refusal_to_copy = [&](const TokenFile& file) {
    return message_of([&] { file.copy(150, 4, some.data()); });
  };
  {
    const auto [path, file] = opened();
    fs::resize_file(path, 100);
    EXPECT_THAT(refusal_to_copy(file), HasSubstr("ids.bin: expected 8 more bytes but the file ends"));
  }
  {
    const auto [path, file] = opened();
    fs::resize_file(path, 500);
    EXPECT_THAT(refusal_to_copy(file), HasSubstr("ids.bin: has been written to since it was opened"));
  }
  {
    const fs::path path = write("ids.bin", counting(200));
    const auto second = std::chrono::floor<std::chrono::seconds>(fs::last_write_time(path));
    fs::last_write_time(path, second);
    const TokenFile file(path);
    fs::last_write_time(path, second + std::chrono::milliseconds(1));
    EXPECT_THAT(refusal_to_copy(file), HasSubstr("ids.bin: has been written to since it was opened"));
  }
  {
    const auto [path, file] = opened();
    write("ids.bin", counting(200));
    EXPECT_THAT(refusal_to_copy(file), HasSubstr("ids.bin: has been written to since it was opened"));
  }
  const auto [path, file] = opened();
  fs::rename(write("others.bin", std::vector<std::uint16_t>(200)), path);  // another file of this name
  file.copy(150, 4, some.data());
  EXPECT_THAT(some, ElementsAre(50, 57, 64, 71));
}

TEST_F(CorpusFiles, OfTokensKnowTheirHighestIdWhereverItIs) {
  constexpr std::size_t kPart = std::size_t{1} << 18;  // ids that are read at a time
  for (const std::size_t at : {std::size_t{0}, kPart - 1, kPart, 2 * kPart - 1, 2 * kPart, 2 * kPart + 4}) {
    std::vector<std::uint16_t> ids(2 * kPart + 5, 3);
    ids[at] = 900;
    EXPECT_EQ(TokenFile(write("ids.bin", ids)).highest_id(), 900) << at;
  }
}

TEST_F(CorpusFiles, OfTokensGiveWindows) {
  const auto ids = counting(200);
  const Corpus corpus = read_corpus(write("ids.bin", ids), "", 4);
  EXPECT_EQ(corpus.vocab(), 995);  // the highest id + 1
  EXPECT_EQ(corpus.size(), 200);
  EXPECT_EQ(corpus.train_size(), 180);
  EXPECT_EQ(corpus.decode(Ids{3, 14}), "3 14 ");
  Rng rng(1);
  const Batch batch = corpus.sample(50, rng);
  for (std::int64_t row = 0; row < 50; ++row) {
    const Ids tokens = batch.tokens.select(0, row).to_vector<std::int32_t>(),
              targets = batch.targets.select(0, row).to_vector<std::int32_t>();
    const auto start = std::ranges::find(ids, tokens[0]);
    EXPECT_TRUE(std::equal(tokens.begin(), tokens.end(), start));
    EXPECT_TRUE(std::equal(targets.begin(), targets.end(), start + 1));
    EXPECT_LT(start - ids.begin(), 176);
  }
  const std::vector<Batch> held_out = corpus.held_out(3);
  ASSERT_EQ(held_out.size(), 2u);
  EXPECT_EQ(held_out[0].tokens.shape(), (Shape{3, 4}));
  EXPECT_EQ(held_out[0].tokens.to_vector<std::int32_t>()[0], ids[180]);
  EXPECT_EQ(held_out[1].tokens.shape(), (Shape{1, 4}));
}

TEST_F(CorpusFiles, OfTokensFitTheTokenizer) {
  const fs::path good = write("good.bin", counting(60)), bad = write("bad.bin", counting(100));
  EXPECT_EQ(read_corpus(good, kTokenizer, 4).vocab(), 512);
  EXPECT_EQ(message_of([&] { read_corpus(bad, kTokenizer, 4); }),
            "--text: must have ids below 512, as the tokenizer, but has 693");
  EXPECT_EQ(message_of([&] { read_corpus(good, "", 6); }),
            "--text: 60 tokens are too few: a tenth of them must exceed --context 6");
}

TEST_F(CorpusFiles, OfTextInTokensAreWhatTheTokenizerMakes) {
  std::string text;
  for (int i = 0; i < 50; ++i) text += "First Citizen: na\u00efve? ";
  const Corpus corpus = read_corpus(write("text.txt", text), kTokenizer, 8);
  const Ids ids = nn::Tokenizer::load(kTokenizer).encode(text);
  EXPECT_EQ(corpus.size(), std::ssize(ids));
  EXPECT_LT(corpus.size(), std::ssize(text));
  EXPECT_EQ(corpus.decode(ids), text);
  EXPECT_EQ(corpus.checksum(), checksum(text));
  EXPECT_EQ(corpus.tokenizer_checksum(), checksum(corpus.vocabulary().tokenizer_json()));
  EXPECT_EQ(corpus.alphabet(), "");
  EXPECT_EQ(corpus.vocabulary().start(), 0);  // <|endoftext|>
  EXPECT_EQ(corpus.held_out(1).front().tokens.to_vector<std::int32_t>()[0],
            ids[static_cast<std::size_t>(corpus.train_size())]);
}

TEST_F(CorpusFiles, OfTheSystemAreReadInTheOrderOfTheirNames) {
  const fs::path licenses = "/usr/share/common-licenses";
  if (!fs::exists(licenses)) GTEST_SKIP() << "no license texts";
  std::map<std::string, std::string> files;  // sorts them
  for (const auto& entry : fs::recursive_directory_iterator(licenses))
    if (!entry.is_symlink() && entry.is_regular_file()) files[entry.path().string()] = read_file(entry.path());
  std::string text;
  for (const auto& [name, content] : files) text += is_utf8(content) ? content : "";
  EXPECT_TRUE(read_text("") == text);
}

TEST_F(CorpusFiles, OfTextAreCharactersWithoutATokenizer) {
  const Corpus corpus = read_corpus(write("text.txt", "b\u00e9\na b\u00e9\na b\u00e9\na b\u00e9\na "), "", 1);
  EXPECT_EQ(corpus.alphabet(), "\n ab\u00e9");
  EXPECT_EQ(corpus.tokenizer_checksum(), "");
  EXPECT_EQ(corpus.vocabulary().start(), 0);
  EXPECT_THAT(corpus.vocabulary().encode("\u00e9 a", "--prompt"), ElementsAre(4, 1, 2));
  EXPECT_EQ(message_of([&] { corpus.vocabulary().encode("az", "--prompt"); }),
            "--prompt: 'z' (U+007A) in line 1 is none of the 5 characters of the model");
  EXPECT_EQ(message_of([&] { corpus.vocabulary().encode("a\nb\n \t", "--text"); }),
            "--text: U+0009 in line 3 is none of the 5 characters of the model");
  EXPECT_EQ(message_of([&] { corpus.vocabulary().encode("a\xFF", "--prompt"); }),
            "--prompt: must be UTF-8 but no character starts at offset 1 with byte 0xFF");
  EXPECT_EQ(message_of([&] { Vocabulary::of_numbers(5).encode("4 a", "--prompt"); }),
            "--prompt: must be ids from 0 to 4 with blanks between, for the model has no tokenizer, but has 'a'");
  EXPECT_THAT(Vocabulary::of_numbers(5).encode(" 4  0 ", "--prompt"), ElementsAre(4, 0));
}

TEST(Vocabulary, NamesUnknownCharactersAndShowsThoseThatAreNoControls) {
  const std::pair<std::string, const char*> characters[] = {
      {"\x1F", "U+001F"}, {" ", "' ' (U+0020)"},  {"~", "'~' (U+007E)"},
      {"\x7F", "U+007F"}, {"\xC2\x9F", "U+009F"}, {"\xC2\xA0", "'\xC2\xA0' (U+00A0)"},
  };
  for (const auto& row : characters)
    EXPECT_EQ(message_of([&] { Vocabulary::of_characters("ab", "").encode(row.first, "--text"); }),
              fmt::format("--text: {} in line 1 is none of the 2 characters of the model", row.second));
}

TEST(Vocabulary, HasACharacterForIdsThatStandForNothing) {
  const Vocabulary vocabulary = Vocabulary::of_tokenizer(kTokenizer);
  EXPECT_EQ(vocabulary.decode(Ids{1, 100000, 2}), "!\uFFFD\"");
  EXPECT_EQ(vocabulary.eos(), 0);
}

}  // namespace
}  // namespace braid::apps

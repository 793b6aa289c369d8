#include <braid/nn/text/tokenizer.h>

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <braid/core/error.h>
#include <braid/core/random.h>
#include <braid/core/utf8.h>
#include <braid/nn/text/detail/merges.h>
#include <tests/support.h>

namespace braid::nn::tokenizer_test {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Ids = std::vector<std::int32_t>;

bool is_printable(int byte) { return (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD); }

/// How GPT-2 writes bytes: those that are not printable as the characters from U+0100 on.
std::string written(const std::string& bytes) {
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    char32_t point = 0x100;
    for (int earlier = 0; earlier < byte; ++earlier) point += is_printable(earlier) ? 0 : 1;
    append_utf8(text, is_printable(byte) ? byte : point);
  }
  return text;
}

/// A file whose tokens are all bytes, by their values, and from 256 on what the merges make.
json file_with(const std::vector<std::pair<std::string, std::string>>& merges = {}) {
  json vocab = json::object(), list = json::array();
  for (int byte = 0; byte < 256; ++byte) vocab[written(std::string(1, static_cast<char>(byte)))] = byte;
  for (const auto& [left, right] : merges) {
    list.push_back(written(left) + " " + written(right));
    if (const std::string both = written(left + right); !vocab.contains(both)) vocab[both] = vocab.size();
  }
  json file =
      json::parse(R"({"added_tokens": [], "normalizer": null, "post_processor": null, "decoder": {"type": "ByteLevel"},
      "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}, "model": {"type": "BPE"}})");
  file["model"].update({{"vocab", vocab}, {"merges", list}});
  return file;
}

json added(int id, const std::string& content, bool normalized = false) {
  return {{"id", id}, {"content", content}, {"special", true}, {"normalized", normalized}};
}

Tokenizer parse(const json& file) { return Tokenizer::parse(file.dump()); }
Ids encode(const json& file, const std::string& text) { return parse(file).encode(text); }

/// What is said about a file that `change` has been made to.
std::string refusal(const std::function<void(json&)>& change) {
  json file = file_with({{"a", "b"}});
  change(file);
  return message_of([&] { parse(file); });
}

TEST(Tokenizer, MergesTheFirstPairOfTheListAndOfEqualOnesTheLeftmost) {
  const json file = file_with({{"b", "c"}, {"a", "b"}, {"a", "a"}, {"aa", "a"}, {"a", "bc"}});
  EXPECT_THAT(encode(file, "abc"), ElementsAre(260));  // bc, then a bc; not ab
  EXPECT_THAT(encode(file, "abab"), ElementsAre(257, 257));
  EXPECT_THAT(encode(file, "aaaaa"), ElementsAre(258, 259));  // aa aa a, then aa aaa
  EXPECT_THAT(encode(file, "aaab"), ElementsAre(258, 257));
}

TEST(Tokenizer, MergesLongWordsAsShortOnes) {
  const json file = file_with({{"a", "a"}, {"aa", "aa"}, {"aaaa", "aaaa"}});
  const Ids ids = encode(file, std::string(8 * 20000 + 5, 'a'));
  EXPECT_EQ(ids.size(), 20002u);
  EXPECT_EQ(std::ranges::count(ids, 258), 20000);
  EXPECT_EQ(ids.back(), 'a');
}

TEST(Merges, HashBothIdsOfAPair) {
  for (int k = 0; k < 64; ++k) EXPECT_NE(detail::PairHash()({1, 0}), detail::PairHash()({0, 0}));
}

TEST(Tokenizer, TakesMergesAsPairsToo) {
  json file = file_with({{"x", "y"}});
  file["model"]["merges"] = json::array({json::array({"x", "y"})});
  EXPECT_THAT(encode(file, "xy"), ElementsAre(256));
}

TEST(Tokenizer, IgnoresMergesOfWordsThatAreTokensWhereTheFileSaysSo) {
  json file = file_with({{"b", "c"}});
  file["model"]["vocab"]["abc"] = 300;
  EXPECT_THAT(encode(file, "abc abc"), ElementsAre('a', 256, ' ', 'a', 256));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(encode(file, "abc abc"), ElementsAre(300, ' ', 'a', 256));
}

TEST(Tokenizer, FindsTheLongestAddedTokenFirst) {
  json file = file_with({{"a", "<"}});
  file["added_tokens"] = json::array(
      {added(300, "<a>"), added(301, "<a><b>"), added(302, "<a"), added(303, "\u00e9 "), added(304, "<a\1")});
  EXPECT_THAT(encode(file, "<a><a><b><a<<a>x\u00e9 <a\1"), ElementsAre(300, 301, 302, '<', 300, 'x', 303, 304));
  EXPECT_EQ(parse(file).decode(Ids{301, 303, 302}), "<a><b>\u00e9 <a");
  EXPECT_EQ(parse(file).vocab(), 305);
  EXPECT_EQ(parse(file).token(280), std::nullopt);
  EXPECT_EQ(parse(file).id("<a>"), 300);
  EXPECT_EQ(parse(file).id("<a"), 302);
  EXPECT_EQ(parse(file).id("<"), '<');
  EXPECT_EQ(parse(file).id("<b"), std::nullopt);
}

TEST(Tokenizer, NormalizesBetweenAddedTokensThatAreNotNormalizedThemselves) {
  json file = file_with();
  file["normalizer"] = {{"type", "NFC"}};
  file["added_tokens"] = json::array({added(300, "e\u0301"), added(301, "\u2126", true)});
  EXPECT_THAT(encode(file, "e\u0301"), ElementsAre(300));
  EXPECT_THAT(encode(file, "\u2126\u03a9e\u0323"), ElementsAre(301, 301, 0xE1, 0xBA, 0xB9));
  EXPECT_THAT(encode(file, "o\u0308"), ElementsAre(0xC3, 0xB6));
  EXPECT_THAT(encode(file, std::string("\0o", 2)), ElementsAre(0, 'o'));
  EXPECT_THAT(encode(file_with(), "o\u0308"), ElementsAre('o', 0xCC, 0x88));
}

TEST(Tokenizer, NormalizesAddedTokensThatAreNotSpecialWhereTheFileDoesNotSay) {
  json file = file_with(), token = added(300, "\u2126");  // which NFC makes U+03A9
  token.erase("normalized");
  file["normalizer"] = {{"type", "NFC"}};
  file["added_tokens"] = json::array({token});
  EXPECT_THAT(encode(file, "\u03a9"), ElementsAre(0xCE, 0xA9));
  file["added_tokens"][0].erase("special");
  EXPECT_THAT(encode(file, "\u03a9"), ElementsAre(300));
}

TEST(Tokenizer, PutsASpaceBeforeEachPieceWhereTheFileSaysSo) {
  json file = file_with();
  file["pre_tokenizer"]["add_prefix_space"] = true;
  file["added_tokens"] = json::array({added(300, "<s>")});
  EXPECT_THAT(encode(file, "a<s>b<s> c"), ElementsAre(' ', 'a', 300, ' ', 'b', 300, ' ', 'c'));
  EXPECT_THAT(encode(file, ""), IsEmpty());
  file["pre_tokenizer"] = {{"type", "ByteLevel"}};  // the default
  EXPECT_THAT(encode(file, "a"), ElementsAre(' ', 'a'));
}

TEST(Tokenizer, CutsByEachStepOfASequence) {
  json file = file_with({{"1", "2"}, {"a", "b"}, {"b", "1"}});
  EXPECT_THAT(encode(file, "ab12"), ElementsAre(257, 256));
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  const auto steps = [&](const json& first) {
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({first, bytes})}};
    return encode(file, "ab12");
  };
  EXPECT_THAT(steps({{"type", "Digits"}, {"individual_digits", true}}), ElementsAre(257, '1', '2'));
  EXPECT_THAT(steps({{"type", "Digits"}, {"individual_digits", false}}), ElementsAre(257, 256));
  EXPECT_THAT(steps({{"type", "Digits"}}), ElementsAre(257, 256));
  EXPECT_THAT(steps({{"type", "Split"}, {"pattern", {{"Regex", "b1"}}}, {"behavior", "Isolated"}}),
              ElementsAre('a', 258, '2'));
  file["pre_tokenizer"] = bytes;
  EXPECT_THAT(encode(file, "a b1"), ElementsAre('a', ' ', 258));
}

TEST(Tokenizer, PutsTheTokensOfATemplateAroundATextOnRequest) {
  json file = file_with();
  file["added_tokens"] = json::array({added(300, "<s>"), added(301, "</s>")});
  file["post_processor"] =
      json::parse(R"({"type": "Sequence", "processors": [{"type": "ByteLevel"}, {"type": "TemplateProcessing",
      "single": [{"SpecialToken": {"id": "<s>"}}, {"Sequence": {"id": "A"}}, {"SpecialToken": {"id": "</s>"}}],
      "special_tokens": {"<s>": {"ids": [300]}, "</s>": {"ids": [301, 301]}}}]})");
  const Tokenizer tokenizer = parse(file);
  EXPECT_THAT(tokenizer.encode("a"), ElementsAre(300, 'a', 301, 301));
  EXPECT_THAT(tokenizer.encode("a", {.add_special_tokens = false}), ElementsAre('a'));
  EXPECT_EQ(tokenizer.eos(), 301);
  EXPECT_EQ(parse(file_with()).eos(), std::nullopt);
}

TEST(Tokenizer, RoundTripsEveryText) {
  const Tokenizer tokenizer = parse(file_with({{"e", " "}, {" ", "t"}, {"\xE6", "\x97"}, {"\n", "\n"}}));
  Rng rng(1);
  for (int trial = 0; trial < 300; ++trial) {
    std::string text;
    for (auto n = rng.below(30); n > 0; --n) {
      const auto point = static_cast<char32_t>(rng.below(3) == 0 ? rng.below(0x110000) : rng.below(0x80));
      if (point >> 11 != 0x1B) append_utf8(text, point);
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

TEST(Tokenizer, DecodesAnyBytes) {
  const Tokenizer tokenizer = parse(file_with());
  EXPECT_EQ(tokenizer.decode(Ids{0xFF, 0, 0xE6}), std::string("\xFF\0\xE6", 3));
  json file = file_with();
  file["model"]["vocab"].update({{" x", 256}, {"\u65e5", 257}});  // whose characters stand for no bytes
  EXPECT_EQ(parse(file).decode(Ids{256, 257}), " x\u65e5");
  EXPECT_EQ(message_of([&] { tokenizer.decode(Ids{1, 256}); }), "decode: 256 is no token of the 256 there are");
  EXPECT_EQ(message_of([&] { tokenizer.decode(Ids{-1}); }), "decode: -1 is no token of the 256 there are");
}

TEST(Tokenizer, SaysWhereATextIsNoUTF8) {
  const Tokenizer tokenizer = parse(file_with());
  EXPECT_EQ(message_of([&] { tokenizer.encode("ab\xC3("); }),
            "encode: the text must be UTF-8 but no character starts at offset 2 with byte 0xC3");
  EXPECT_THROW(tokenizer.encode("\xED\xA0\x80"), ValueError);
}

TEST(Tokenizer, LeavesNoByteOut) {
  json file = file_with();
  file["model"]["vocab"].erase("a");
  EXPECT_EQ(message_of([&] { encode(file, "bab"); }), "encode: the byte 0x61 is no token");
}

TEST(Tokenizer, RefusesWhatIsDamaged) {
  for (const char* text : {"{", "{}", "[1]"})
    EXPECT_EQ(message_of([&] { Tokenizer::parse(text, "x.json"); }), "x.json: must be a JSON object with a model");
  EXPECT_EQ(refusal([](json& f) { f["model"] = 1; }), "tokenizer.json: model must be an object but is 1");
  EXPECT_EQ(refusal([](json& f) { f["model"]["merges"].push_back("a zz"); }),
            "tokenizer.json: model.merges[1] is a merge of 'zz', which is no token");
  EXPECT_EQ(refusal([](json& f) { f["model"]["merges"].push_back("b a"); }),
            "tokenizer.json: model.merges[1] is a merge of 'ba', which is no token");
  EXPECT_EQ(refusal([](json& f) { f["model"]["merges"].push_back("a  b"); }),
            "tokenizer.json: model.merges[1] must be two tokens with a space between them but is \"a  b\"");
  EXPECT_EQ(refusal([](json& f) { f["model"]["vocab"]["xy"] = 7; }), "tokenizer.json: model.vocab has the id 7 twice");
  for (const json& id : {json(-1), json(1.5), json("1"), json(1 << 24), json(1ull << 40), json()})
    EXPECT_EQ(refusal([&](json& f) { f["model"]["vocab"]["xy"] = id; }),
              "tokenizer.json: model.vocab.xy must be an id below 16777216 but is " + id.dump());
  EXPECT_EQ(refusal([](json& f) { f["added_tokens"] = json::array({added(5, "<s>")}); }),
            "tokenizer.json: added_tokens[0] has the id 5 twice");
  EXPECT_EQ(refusal([](json& f) { f["added_tokens"] = json::array({added(5, "ab")}); }),
            "tokenizer.json: added_tokens[0].id must be 256, as in model.vocab, but is 5");
  EXPECT_EQ(refusal([](json& f) { f["model"]["vocab"] = json::object(); }),
            "tokenizer.json: model.vocab must be an object of tokens but is an object");
  EXPECT_THAT(refusal([](json& f) { f["model"]["merges"] = 1; }), HasSubstr("model.merges must be a list but is 1"));
  EXPECT_THAT(refusal([](json& f) { f["added_tokens"] = json::array({added(400, "")}); }),
              HasSubstr("content must not be empty"));
  const auto refused_token = [](const char* key, const json& value) {
    return refusal([&](json& f) {
      f["added_tokens"] = json::array({added(400, "<s>")});
      f["added_tokens"][0][key] = value;
    });
  };
  EXPECT_EQ(refused_token("content", 1), "tokenizer.json: added_tokens[0].content must be a string but is 1");
  for (const char* flag : {"special", "normalized"})
    EXPECT_EQ(refused_token(flag, 1),
              fmt::format("tokenizer.json: added_tokens[0].{} must be true or false but is 1", flag));
}

TEST(Tokenizer, NamesTheFirstPartThatDoesNotFit) {
  const auto part = [](json& f, const std::string& path) -> json& {
    return path.starts_with("model.") ? f["model"][path.substr(6)] : f[path];
  };
  std::vector<std::string> paths;
  for (const char* key : {"type", "dropout", "end_of_word_suffix", "byte_fallback", "ignore_merges", "vocab", "merges"})
    paths.push_back(std::string("model.") + key);
  for (const char* key : {"added_tokens", "normalizer", "pre_tokenizer", "post_processor", "decoder"})
    paths.emplace_back(key);
  json good = file_with(), bad = good;
  for (const std::string& path : paths) part(bad, path) = 1;
  for (const std::string& path : paths) {
    EXPECT_THAT(message_of([&] { parse(bad); }), testing::StartsWith("tokenizer.json: " + path + " must be"));
    part(bad, path) = part(good, path);
  }
}

TEST(Tokenizer, SaysWhatIsWrongWithAMerge) {
  const auto of = [](const json& merge) { return refusal([&](json& f) { f["model"]["merges"].push_back(merge); }); };
  const std::string merge = "tokenizer.json: model.merges[1] ";
  EXPECT_EQ(of(json::array({"a"})), merge + "must be a pair but is a list");
  EXPECT_EQ(of(json::array({"a", "b", "c"})), merge + "must be a pair but is a list");
  EXPECT_EQ(of(json(7)), merge + "must be a string but is 7");
  EXPECT_EQ(of(json("ab")), merge + "must be two tokens with a space between them but is \"ab\"");
  EXPECT_EQ(of(json("zz yy")), merge + "is a merge of 'zz', which is no token");
}

TEST(Tokenizer, SaysWhatIsWrongWithASequenceOfSteps) {
  const auto of = [](const char* steps) {
    return refusal([&](json& f) {
      f["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::parse(steps)}};
    });
  };
  const std::string whole = "tokenizer.json: pre_tokenizer", step = whole + ".pretokenizers";
  const std::string kinds = "ByteLevel, or Split, Digits or a Sequence of them before it,";
  for (const char* steps : {"[]", "[7]", R"([{"type": "Digits"}])"})
    EXPECT_EQ(of(steps), whole + " must be, or end in, ByteLevel but is an object");
  EXPECT_EQ(of(R"([{"type": "ByteLevel"}, {"type": "ByteLevel"}])"),
            step + "[0] must be the last step but is an object");
  EXPECT_EQ(of(R"([7, {"type": "ByteLevel"}])"), step + "[0] must be an object but is 7");
  EXPECT_EQ(of(R"([{"type": "Metaspace"}, {"type": "ByteLevel"}])"),
            step + "[0].type must be " + kinds + " but is \"Metaspace\"");
  EXPECT_EQ(of(R"([{"type": "Digits"}, {"type": "ByteLevel"}])"),
            step + "[1].add_prefix_space must be false after other steps but is null");
}

TEST(Tokenizer, SaysWhatIsWrongWithATemplate) {
  const auto of = [](const std::string& pieces, const char* ids = "[7]") {
    return refusal([&](json& f) {
      f["model"]["vocab"]["xy"] = 300;
      f["post_processor"] = {{"type", "TemplateProcessing"},
                             {"single", json::parse("[" + pieces + "]")},
                             {"special_tokens", {{"s", {{"ids", json::parse(ids)}}}}}};
    });
  };
  const std::string text = R"({"Sequence": {"id": "A"}})", token = R"({"SpecialToken": {"id": "s"}})";
  const std::string single = "tokenizer.json: post_processor.single";
  const std::string special = "tokenizer.json: post_processor.special_tokens";
  EXPECT_EQ(of(token), single + " must have the text but is a list");
  EXPECT_EQ(of(text + "," + text), single + "[1].Sequence.id must be one A but is \"A\"");
  EXPECT_EQ(of(R"({"Sequence": {"id": "B"}})"), single + "[0].Sequence.id must be one A but is \"B\"");
  EXPECT_EQ(of("{}"), single + "[0].SpecialToken must be an object but is null");
  EXPECT_EQ(of(R"({"SpecialToken": {"id": "t"}})"), special + ".t must be an object but is null");
  EXPECT_EQ(of(token, "7"), special + ".s.ids must be a list but is 7");
  EXPECT_EQ(of(token, "[7, 299]"), special + ".s.ids[1] must be a token but is 299");
  EXPECT_EQ(of(token, "[301]"), special + ".s.ids[0] must be a token but is 301");
}

TEST(Tokenizer, RefusesByNameWhatItDoesNotDo) {
  const auto only = [](const std::string& path, const std::string& least, const std::string& is) {
    return "tokenizer.json: " + path + " must be " + least + ", the only supported value, but is " + is;
  };
  EXPECT_EQ(refusal([](json& f) { f["model"]["type"] = "Unigram"; }), only("model.type", "\"BPE\"", "\"Unigram\""));
  EXPECT_EQ(refusal([](json& f) { f["model"]["dropout"] = 0.1; }), only("model.dropout", "0", "0.1"));
  EXPECT_EQ(refusal([](json& f) { f["model"]["byte_fallback"] = true; }), only("model.byte_fallback", "false", "true"));
  EXPECT_EQ(refusal([](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; }),
            only("model.end_of_word_suffix", "\"\"", "\"</w>\""));
  EXPECT_EQ(refusal([](json& f) { f["decoder"]["type"] = "Metaspace"; }),
            only("decoder.type", "\"ByteLevel\"", "\"Metaspace\""));
  EXPECT_EQ(refusal([](json& f) {
              f["normalizer"] = {{"type", "NFKC"}};
            }),
            "tokenizer.json: normalizer.type must be \"NFC\", the only supported one, but is \"NFKC\"");
  EXPECT_EQ(refusal([](json& f) {
              f["post_processor"] = {{"type", "RobertaProcessing"}};
            }),
            only("post_processor.type", "\"ByteLevel\"", "\"RobertaProcessing\""));
  EXPECT_THAT(refusal([](json& f) { f["pre_tokenizer"] = nullptr; }),
              HasSubstr("pre_tokenizer must be, or end in, ByteLevel"));
  EXPECT_THAT(refusal([](json& f) {
                f["pre_tokenizer"] = {{"type", "Metaspace"}};
              }),
              HasSubstr("pre_tokenizer must be, or end in"));
  EXPECT_EQ(refusal([](json& f) {
              f["pre_tokenizer"] =
                  json::parse(R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "behavior": "Isolated",
                  "pattern": {"Regex": "\\w"}}, {"type": "ByteLevel", "add_prefix_space": false}]})");
            }),
            "tokenizer.json: pre_tokenizer.pretokenizers[0].pattern.Regex has \\w, which is not supported");
  for (const std::string way : {"single_word", "lstrip", "rstrip"})
    EXPECT_EQ(refusal([&](json& f) {
                f["added_tokens"] = json::array({added(300, "<s>")});
                f["added_tokens"][0][way] = true;
              }),
              only("added_tokens[0]." + way, "false", "true"));
  EXPECT_EQ(refusal([](json& f) { f["model"]["continuing_subword_prefix"] = "##"; }),
            only("model.continuing_subword_prefix", "\"\"", "\"##\""));
  const auto refused_split = [](const char* key, const json& value) {
    return refusal([&](json& f) {
      json split = {{"type", "Split"}, {"behavior", "Isolated"}, {"invert", false}, {"pattern", {{"Regex", "a"}}}};
      split[key] = value;
      const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
      f["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({split, bytes})}};
    });
  };
  const std::string split = "pre_tokenizer.pretokenizers[0].";
  EXPECT_EQ(refused_split("behavior", "Removed"), only(split + "behavior", "\"Isolated\"", "\"Removed\""));
  EXPECT_EQ(refused_split("invert", true), only(split + "invert", "false", "true"));
}

TEST(Tokenizer, SplitsAsGPT2WhereTheFileDoesNotSay) {
  json file = file_with({{"a", " "}});
  file["pre_tokenizer"].erase("use_regex");
  EXPECT_THAT(encode(file, "a b"), ElementsAre('a', ' ', 'b'));
}

TEST(Tokenizer, KnowsTheEndOfATextByItsNames) {
  EXPECT_EQ(parse(file_with()).eos(), std::nullopt);
  for (const char* name : {"<|endoftext|>", "</s>", "<|end_of_text|>"}) {
    json file = file_with();
    file["added_tokens"] = json::array({added(300, name)});
    EXPECT_EQ(parse(file).eos(), 300) << name;
  }
}

TEST(Tokenizer, RefusesWhatIsNestedWithoutEnd) {
  const std::string deep(200000, '[');
  EXPECT_EQ(message_of([&] { Tokenizer::parse("{\"model\": " + deep + std::string(deep.size(), ']') + "}"); }),
            "tokenizer.json: must nest at most 64 deep but does so deeper at byte 73");
  const auto nested = [](int count, json inside) {
    for (int i = 0; i < count; ++i) inside = {{"processors", json::array({inside})}, {"type", "Sequence"}};
    json file = file_with();
    file["post_processor"] = std::move(inside);
    return file;
  };
  EXPECT_THAT(encode(nested(31, {{"type", "ByteLevel"}}), "a"), ElementsAre('a'));  // 64 deep
  for (const int count : {32, 100})
    EXPECT_THAT(message_of([&] {
                  parse(nested(count, {{"type", "ByteLevel"}}));
                }),
                HasSubstr("must nest at most 64 deep"));
}

/// A tokenizer that splits by one expression.
Tokenizer splitting_by(const std::string& expression) {
  const json split = {{"type", "Split"}, {"pattern", {{"Regex", expression}}}, {"behavior", "Isolated"}};
  const json bytes = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}};
  json file = file_with({{"a", "a"}});
  file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", json::array({split, bytes})}};
  return parse(file);
}

TEST(Tokenizer, HasIdsInProportionToTheFile) {
  json file = file_with();
  file["model"]["vocab"]["xy"] = 65535;
  EXPECT_EQ(parse(file).vocab(), 65536);
  for (const int id : {65536, 16777215})
    EXPECT_THAT(refusal([&](json& f) { f["model"]["vocab"]["xy"] = id; }),
                testing::EndsWith(fmt::format(" bytes allows 65536 ids but there are {}", id + 1)));
}

TEST(Tokenizer, PutsIdsInProportionToTheFileAroundAText) {
  const auto with_template = [](int pieces, int ids, int more) {
    json file = file_with(), list = json::array({{{"Sequence", {{"id", "A"}}}}});
    for (int i = 0; i < pieces; ++i) list.push_back({{"SpecialToken", {{"id", "s"}}}});
    list.push_back({{"SpecialToken", {{"id", "t"}}}});
    file["post_processor"] = {{"type", "TemplateProcessing"},
                              {"single", list},
                              {"special_tokens",
                               {{"s", {{"ids", std::vector<int>(static_cast<std::size_t>(ids), 7)}}},
                                {"t", {{"ids", std::vector<int>(static_cast<std::size_t>(more), 7)}}}}}};
    return file;
  };
  EXPECT_EQ(encode(with_template(256, 255, 0), "").size(), 65280u);
  EXPECT_THAT(message_of([&] { parse(with_template(256, 255, 1)); }),
              testing::EndsWith(" bytes allows 65536 ids but there are 65537"));
  const json hostile = with_template(20000, 20000, 0);
  EXPECT_THAT(message_of([&] { parse(hostile); }), HasSubstr(" ids but there are "));
}

TEST(Tokenizer, HasNoMoreThan64StepsBeforeMerging) {
  const auto digits = [](std::size_t count) {
    json file = file_with(), steps = std::vector<json>(count, {{"type", "Digits"}});
    steps.push_back(file["pre_tokenizer"]);
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    return file;
  };
  EXPECT_THAT(encode(digits(63), "a1"), ElementsAre('a', '1'));
  EXPECT_EQ(message_of([&] { parse(digits(64)); }),
            "tokenizer.json: pre_tokenizer must have at most 64 steps but is an object");
}

TEST(Tokenizer, QuotesALineAtMost) {
  const std::string name(100'000, '\n');
  const std::string message = refusal([&](json& f) {
    f["post_processor"] = {{"type", "TemplateProcessing"},
                           {"single", json::array({{{"SpecialToken", {{"id", name}}}}})},
                           {"special_tokens", {{name, {{"ids", json::array({-1})}}}}}};
  });
  EXPECT_THAT(message, HasSubstr("tokenizer.json: post_processor.special_tokens.\\n\\n"));
  EXPECT_THAT(message, HasSubstr("....ids[0] must be an id below 16777216 but is -1"));
  EXPECT_LT(message.size(), 250u);
}

TEST(Tokenizer, MatchesPatternsInProportionToTheText) {
  for (const char* quadratic : {"a*b|a", "(?=a*)a", "(?:a*+b|a)*c|a", "a*a*+b|a", "(?:a(?=a*))*b|a"}) {
    const Tokenizer tokenizer = splitting_by(quadratic);
    EXPECT_EQ(tokenizer.encode(std::string(256, 'a')).size(), 256u) << quadratic;
    EXPECT_THAT(message_of([&] { tokenizer.encode(std::string(100'000, 'a')); }),
                HasSubstr("encode: the pattern of the pre_tokenizer: a size of 100000 bytes allows 10000000 steps but"))
        << quadratic;
  }
  EXPECT_THAT(message_of([&] { splitting_by("(?:a|aa)+[bc]").encode(std::string(60, 'a')); }),
              HasSubstr("encode: the pattern of the pre_tokenizer: a size of 60 bytes allows 6553600 steps but"));
}

TEST(Tokenizer, MatchesWhatIsFarInATextAsWhatIsNear) {
  const std::string far(5000, 'a');
  EXPECT_EQ(splitting_by("a+").encode(far + "b" + far), splitting_by("b").encode(far + "b" + far));
  EXPECT_EQ(splitting_by("a+(?=b)").encode(far + "b").size(), 2501u);
  EXPECT_EQ(splitting_by("a+(?!b)").encode(far + "b").size(), 2502u);  // the last a is not among the others
  EXPECT_EQ(splitting_by("(?<=a)b").encode(far + "bb").size(), 2502u);
  std::string marks;
  for (int i = 0; i < 1000; ++i) marks += "\u65e5";
  EXPECT_EQ(splitting_by("x").encode(marks).size(), 3000u);
}

TEST(Tokenizer, ComparesTextsWithAddedTokensInProportionToThem) {
  json file = file_with();
  file["added_tokens"] = json::array({added(300, std::string(3000, 'a') + "b")});
  const Tokenizer tokenizer = parse(file);
  EXPECT_THAT(tokenizer.encode(std::string(3000, 'a') + "b"), ElementsAre(300));
  EXPECT_THAT(message_of([&] { tokenizer.encode(std::string(100'000, 'a')); }),
              HasSubstr("encode: added tokens: a size of 100000 bytes allows 10000000 steps but there are 10000001"));
}

TEST(Tokenizer, RefusesMarksWithoutEnd) {
  const auto marks = [](int count) {
    std::string text;
    for (int i = 0; i < 100; ++i) {
      text += "a\u0300";
      for (int k = 1; k < count; ++k) text += "\u0323";
    }
    return text;
  };
  json file = file_with();
  file["normalizer"] = {{"type", "NFC"}};
  EXPECT_NO_THROW(encode(file, marks(1000)));
  const std::string message = "encode: a letter must have at most 1000 combining marks but has more";
  EXPECT_EQ(message_of([&] { encode(file, marks(1001)); }), message);
  file["added_tokens"] = json::array({added(300, marks(1001), true)});
  EXPECT_EQ(message_of([&] { parse(file); }), "tokenizer.json: " + message);
}

TEST(Tokenizer, NamesTheFileThatItCannotRead) {
  EXPECT_THAT(message_of([] { Tokenizer::load("/none/tokenizer.json"); }),
              HasSubstr("/none/tokenizer.json: cannot be opened"));
}

}  // namespace
}  // namespace braid::nn::tokenizer_test

#include "../../../apps/look/intervention.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <braid/core/error.h>

namespace braid::look::intervention_test {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

Intervention parsed(const char* verb, const char* value) {
  Intervention change = parse_intervention(verb, value);
  complete(change, 4, 6);
  return change;
}

TEST(Intervention, HasStreamsAndTheirSites) {
  const Intervention everywhere = parsed("ablate", "stream:2");
  EXPECT_EQ(everywhere.target, Target::stream);
  EXPECT_EQ(everywhere.action, Action::scale);
  EXPECT_EQ(everywhere.factor, 0);
  EXPECT_EQ(everywhere.text, "ablate stream:2");
  EXPECT_TRUE(everywhere.changes_stream(0) && everywhere.changes_stream(6));
  const Intervention once = parsed("rescue", "stream:1@3");
  EXPECT_EQ(once.action, Action::rescue);
  EXPECT_TRUE(!once.changes_stream(2) && once.changes_stream(3) && !once.changes_stream(4));
  const Intervention some = parsed("swap", "stream:0:3@2-4");
  EXPECT_EQ(some.action, Action::swap);
  EXPECT_EQ(some.index, 0);
  EXPECT_EQ(some.other, 3);
  EXPECT_EQ(some.first, 2);
  EXPECT_EQ(some.last, 4);
}

TEST(Intervention, HasWritesPathsAndFactors) {
  const Intervention write = parsed("scale", "write:5:-0.5");
  EXPECT_EQ(write.target, Target::write);
  EXPECT_EQ(write.index, 5);
  EXPECT_EQ(write.factor, -0.5);
  EXPECT_FALSE(write.changes_stream(0));
  const Intervention path = parsed("scale", "path:1:6:2");
  EXPECT_EQ(path.target, Target::path);
  EXPECT_EQ(path.index, 1);
  EXPECT_EQ(path.other, 6);
  EXPECT_EQ(path.factor, 2);
  EXPECT_EQ(parsed("scale", "stream:1@2:3").factor, 3);
}

TEST(Intervention, SaysWhatItTakes) {
  for (const char* value : {"", "stream", "stream:", "stream:x", "stream:-1", "stream:1:2", "stream:1@", "stream:1@-2",
                            "stream:1@2-", "stream:1@2-3-4", "write", "write:1:2", "path:1", "streams:1", "stream:1 ",
                            "stream:99999999999999999999", "write:0x1"})
    EXPECT_THAT([&] { parse_intervention("ablate", value); },
                ThrowsMessage<ValueError>(HasSubstr("--ablate: must be stream:I, stream:I@SITE, stream:I@SITE-SITE, "
                                                    "write:SITE or path:SITE:SITE but is '")))
        << value;
  for (const char* value : {"stream:1", "write:1", "write:1:nan", "write:1:", "write:1:1:1", "stream:1:2:1"})
    EXPECT_THAT([&] { parse_intervention("scale", value); },
                ThrowsMessage<ValueError>(HasSubstr("write:SITE:FACTOR or path:SITE:SITE:FACTOR but is '")))
        << value;
  for (const char* value : {"stream:1", "write:1:2", "path:1:2", "stream:1:2:3"})
    EXPECT_THAT([&] { parse_intervention("swap", value); },
                ThrowsMessage<ValueError>(HasSubstr("--swap: must be stream:I:J or ")))
        << value;
}

TEST(Intervention, RefusesStreamsAndSitesThatDoNotExist) {
  const auto refused = [](const char* verb, const char* value, const char* message) {
    EXPECT_THAT([&] { parsed(verb, value); }, ThrowsMessage<ValueError>(message));
  };
  refused("ablate", "stream:4", "--ablate stream:4: a stream must be in [0, 3] but is 4");
  refused("swap", "stream:0:4", "--swap stream:0:4: a stream must be in [0, 3] but is 4");
  refused("ablate", "stream:0@7", "--ablate stream:0@7: the first site must be in [0, 6] but is 7");
  refused("ablate", "stream:0@3-7", "--ablate stream:0@3-7: the last site must be in [3, 6] but is 7");
  refused("ablate", "stream:0@3-2", "--ablate stream:0@3-2: the last site must be in [3, 6] but is 2");
  refused("rescue", "write:6", "--rescue write:6: the site of the write must be in [0, 5] but is 6");
  refused("ablate", "path:2:2", "--ablate path:2:2: the end of the path must be in [3, 6] but is 2");
  refused("ablate", "path:2:7", "--ablate path:2:7: the end of the path must be in [3, 6] but is 7");
}

}  // namespace
}  // namespace braid::look::intervention_test

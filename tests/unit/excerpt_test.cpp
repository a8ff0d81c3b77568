// Texts of files as messages show them.
#include <gtest/gtest.h>

#include <linear_ddp/data/excerpt.hpp>
#include <linear_ddp/data/utf8.hpp>

namespace ddp {
namespace {

/// The characters' first and last of each length, and around the surrogates, as RFC 3629 encodes them.
const std::string good = "\u007F \u0080 \u07FF \u0800 \uD7FF \uE000 \uFFFF \U00010000 \U0010FFFF";

TEST(Utf8, HasOneFormForEachCharacter) {
  EXPECT_TRUE(is_utf8(good));
  EXPECT_TRUE(is_utf8(""));
  EXPECT_TRUE(is_utf8(std::string_view("\0", 1)));
  // latin1; a lone continuation; cut off; longer forms of '/', U+07FF and U+FFFF; the surrogate U+D800; U+110000; none.
  for (const std::string bad :
       {"gr\xF6\xDF", "\x80", "\xC3", "\xE2\x82", "\xF0\x9F\x92", "\xC0\xAF", "\xE0\x9F\xBF", "\xF0\x8F\xBF\xBF",
        "\xED\xA0\x80", "\xF4\x90\x80\x80", "\xF5\x80\x80\x80", "\xFF", "\xC3("}) {
    EXPECT_FALSE(is_utf8(bad)) << excerpt(bad);
    EXPECT_FALSE(is_utf8(good + bad + "a")) << excerpt(bad);
    EXPECT_TRUE(is_utf8(excerpt(bad))) << excerpt(bad);
  }
}

TEST(Excerpt, ShowsWhatCanBeSeen) {
  EXPECT_EQ(excerpt(""), "''");
  EXPECT_EQ(excerpt("gr\u00F6\u00DFe"), "'gr\u00F6\u00DFe'");
  EXPECT_EQ(excerpt("gr\xF6\xDF\x65"), "'gr\\xf6\\xdfe'");
  EXPECT_EQ(excerpt(std::string_view("\0\n\x1B[m\x7F", 6)), "'\\x00\\x0a\\x1b[m\\x7f'");
}

TEST(Excerpt, EndsWithAWholeCharacter) {
  const std::string forty(40, 'x');
  EXPECT_EQ(excerpt(forty), "'" + forty + "'");
  EXPECT_EQ(excerpt(forty + "y"), "'" + forty + "...'");
  for (std::size_t before = 36; before <= 40; ++before) {
    const std::string start(before, 'x');
    EXPECT_EQ(excerpt(start + "\U0001F4A9"), "'" + start + (before == 36 ? "\U0001F4A9'" : "...'"));
    EXPECT_EQ(excerpt(start + "\xFF\xFF\xFF\xFF\xFF").substr(0, before + 1), "'" + start);
  }
}

}  // namespace
}  // namespace ddp

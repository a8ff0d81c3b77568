// What a text table's first records say: whether there are names, which, and how many columns.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal_of_text(const std::string& text, const ColumnSelection& selection = {},
                            const TextFormat& format = {}) {
  const SharedFile file("refused.csv", text);
  return refusal([&] { return read_table(world(), file.path(), format, selection); });
}

TEST(TextHead, ATrailingDelimiterIsOneInEveryRowOrInNone) {
  const SharedFile none("header_only.csv", "a,y,\n1,2\n3,4\n");
  EXPECT_THAT(whole(read_table(world(), none.path(), {}, {})).targets, ElementsAre(2, 4));
  const SharedFile bare("bare.csv", "1,2,\n3,4,\n");
  EXPECT_THAT(whole(read_table(world(), bare.path(), {}, {})).features, ElementsAre(1, 3));
  EXPECT_THAT(refusal_of_text("a,y\n1,2,\n3,4\n"),
              HasSubstr("line 3: got 2 fields, expected 2 and a delimiter behind them"));
  EXPECT_THAT(refusal_of_text("a,y\n1,2,\n3,4,5\n"), HasSubstr("line 3: got 3 fields, expected 2"));
  EXPECT_THAT(refusal_of_text("a,y\n1,2\n3,4,\n"), HasSubstr("line 3: got 3 fields, expected 2"));
  EXPECT_THAT(refusal_of_text("a,y\n1,2,,\n"), HasSubstr("line 2: got 4 fields, expected 2"));
}

TEST(TextHead, AGapInTheFirstRowMakesNoHeader) {
  for (const std::string gap : {"NA", "nan", "", "\"\""}) {
    const std::string told = gap == "\"\"" ? "''" : "'" + gap + "'";
    EXPECT_THAT(refusal_of_text("1," + gap + ",3\n4,5,6\n"),
                HasSubstr("line 1, column 2 ('#1'): missing value " + told));
    EXPECT_THAT(refusal_of_text("1,2," + gap + ",\n4,5,6,\n"),
                HasSubstr("line 1, column 3 ('#2'): missing value " + told));
  }
  EXPECT_THAT(refusal_of_text("NA,2,3\n4,5,6\n"), HasSubstr("line 1, column 1 ('#0'): missing value 'NA'"));
}

TEST(TextHead, AnEmptyFirstFieldIsPandasIndexOrAGap) {
  const std::string rows = "0,1,2\n1,3,4\n";
  const SharedFile named("named.csv", ",a,b\n" + rows), numbers("numbers.csv", ",2019,2020\n" + rows);
  for (const auto& [file, format] :
       {std::pair(&named, TextFormat{}), std::pair(&numbers, TextFormat{.header = Header::yes})}) {
    const auto share = read_table(world(), file->path(), format, {{"#1"}, {"#2"}});
    EXPECT_THAT(whole(share).features, ElementsAre(1, 3));
    EXPECT_THAT(share.target_names, ElementsAre(format.header == Header::yes ? "2020" : "b"));
  }
  EXPECT_THAT(refusal_of_text(",2019,2020\n" + rows), AllOf(HasSubstr("line 1"), HasSubstr("--header yes")));
  EXPECT_THAT(refusal_of_text(",2019,2020\n" + rows, {}, {.header = Header::no}),
              HasSubstr("line 1, column 1 ('#0'): missing value"));
}

TEST(TextHead, NamesAreUtf8) {
  EXPECT_THAT(refusal_of_text("a,gr\xF6\xDF\x65,y\n1,2,3\n"),
              AllOf(HasSubstr("line 1, column 2: the name 'gr\\xf6\\xdfe' is not UTF-8"), HasSubstr("iconv")));
  EXPECT_THAT(refusal_of_text("\n1,\x80\n1,2\n", {}, {.header = Header::yes}), HasSubstr("line 2, column 2: the name"));
  const SharedFile file("utf8.csv", "gr\u00F6\u00DFe,y\n1,2\n");
  EXPECT_THAT(read_table(world(), file.path(), {}, {}).feature_names, ElementsAre("gr\u00F6\u00DFe"));
}

}  // namespace
}  // namespace ddp::test

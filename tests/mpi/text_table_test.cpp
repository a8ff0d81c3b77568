// CSV and TSV tables, read in shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

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

TEST(TextTable, ABadNumberIsToldByWhoeverReadsIt) {
  EXPECT_THAT(refusal([] {
                return read_case("L07-bad-line-last-quarter.csv", {{}, {"y"}});
              }),
              AllOf(HasSubstr("line 40, column 2 ('b'): 'oops'"),
                    HasSubstr(world().size() > 1 ? fmt::format("rank {}", world().size() - 1) : "")));
}

TEST(TextTable, NeverReadsPartOfABadNumber) {
  for (const char* bad : {"+-1", "++1", "+", "-", ".", "1e", "1.2.3", "1,5", "\x31\xC2\xA0"}) {
    EXPECT_THAT(refusal_of_text(fmt::format("a,y\n1,2\n\"{}\",2\n", bad)), HasSubstr("line 3, column 1 ('a'): "))
        << bad;
  }
}

TEST(TextTable, ANumberBelowAllDoublesIsZero) {
  const SharedFile small("underflow.csv", "a,y\n1e-400,-1e-999\n");
  EXPECT_THAT(whole(read_table(world(), small.path(), {}, {})).features, ElementsAre(0.0));
}

TEST(TextTable, ReadsTheDataSets) {
  const auto diabetes = whole(read_table(world(), dataset_path("diabetes.csv"), {}, {}));
  ASSERT_EQ(diabetes.rows, 442);
  EXPECT_EQ(std::vector<double>(diabetes.features.begin(), diabetes.features.begin() + 10),
            (std::vector<double>{59, 2, 32.1, 101, 157, 93.2, 38, 4, 4.8598, 87}));
  double sum = 0;
  for (const double target : diabetes.targets) sum += target;
  EXPECT_EQ(sum, 67243);  // the mean is 152.133…

  const auto linnerud = read_table(world(), dataset_path("linnerud.csv"), {}, {{}, {"Weight", "Waist", "Pulse"}});
  EXPECT_THAT(linnerud.feature_names, ElementsAre("Chins", "Situps", "Jumps"));
  const auto exercise = whole(linnerud);
  ASSERT_EQ(exercise.rows, 20);
  EXPECT_THAT(std::vector<double>(exercise.targets.begin(), exercise.targets.begin() + 3), ElementsAre(191, 36, 50));
  EXPECT_EQ(whole(read_table(world(), dataset_path("Longley.csv"), {}, {{}, {"y"}})).targets.front(), 60323);
  EXPECT_EQ(whole(read_table(world(), dataset_path("Norris.csv"), {}, {{}, {"y"}})).rows, 36);
}

TEST(TextTable, ColumnsThatAreNotAskedForMayHoldAnything) {
  const SharedFile file("text.csv", "id,x,y\nfirst,1,2\n\"se\"\"cond, or\nso\",3,4\n,5,6\n");
  const auto share = read_table(world(), file.path(), {}, {{"x"}, {"y"}});
  EXPECT_THAT(whole(share).features, ElementsAre(1, 3, 5));
  EXPECT_THAT(refusal([&] { return read_table(world(), file.path(), {}, {}); }),
              HasSubstr("line 2, column 1 ('id'): 'first'"));
}

TEST(TextTable, ALineOrAQuoteWithoutEndIsNotReadAsAWhole) {
  if (world().size() > 1) GTEST_SKIP() << "takes half a GiB on each rank";
  for (const bool quoted : {false, true}) {
    const SharedFile file("endless.csv", quoted ? "a,y\n1,\"" : "a,y\n1,");
    std::filesystem::resize_file(file.path(), std::uintmax_t{300} << 20U);  // zeros that take no disk
    EXPECT_THAT(refusal([&] { return read_table(world(), file.path(), {}, {}); }),
                AllOf(HasSubstr("line 2: "), HasSubstr("within 256 MiB"),
                      HasSubstr(quoted ? "quoted field" : "line does not end")));
  }
}

TEST(TextTable, QuotesMustPair) {
  EXPECT_THAT(refusal_of_text("a,y\n1,2\n3,\"4\n5,6\n"), AllOf(HasSubstr("line 3: "), HasSubstr("not closed")));
  EXPECT_THAT(refusal_of_text("a,b,y\n1,2,3\n4,5\" long,6\n7,8\",9\n"),
              AllOf(HasSubstr("line 3: "), HasSubstr("quote")));
  EXPECT_THAT(refusal_of_text("a,y\n1,\"2\"x\n"), AllOf(HasSubstr("line 2: "), HasSubstr("quote")));
  EXPECT_THAT(refusal_of_text("\"a\"b,y\n1,2\n"), AllOf(HasSubstr("line 1: "), HasSubstr("quote")));
  const SharedFile file("quoted.csv", "\"a \"\"x\"\"\" , \"y\"\n \"1\" ,\" 2 \"\n");
  const auto share = read_table(world(), file.path(), {}, {});
  EXPECT_THAT(share.feature_names, ElementsAre("a \"x\""));
  EXPECT_THAT(whole(share).targets, ElementsAre(2));
}

TEST(TextTable, RefusesWhatIsNoTextFile) {
  const auto refusal_of_path = [](const std::string& path) {
    return refusal([&] { return read_table(world(), path, {}, {}); });
  };
  EXPECT_THAT(refusal_of_path("/nowhere/nope.csv"), AllOf(HasSubstr("/nowhere/nope.csv"), HasSubstr("No such file")));
  EXPECT_THAT(refusal([] { return read_text_table(world(), "/tmp", {}, {}); }), HasSubstr("directory"));
  EXPECT_THAT(refusal_of_path("table.xlsx"), HasSubstr("'.xlsx'"));
  EXPECT_THAT(refusal_of_text("\xFF\xFE"
                              "a\0,\0"),
              HasSubstr("UTF-16"));
  EXPECT_THAT(refusal_of_text("a,y\n1,2\n", {}, {.delimiter = '.'}), HasSubstr("delimiter"));
  EXPECT_THAT(refusal_of_text("a,y\n1,2\n", {{}, {"Y"}}), HasSubstr("did you mean 'y'"));
  const auto cut = refusal_of_text("a,y\n1," + std::string(1000, 'z') + "\x01\n");
  EXPECT_THAT(cut, HasSubstr("'" + std::string(40, 'z') + "...'"));
}

/// Time that grows with the square of a field's length would not end here.
TEST(TextTable, FieldsOfNothingButQuotesAreReadInLinearTime) {
  const std::string quotes(4'000'000, '"'), written = '"' + quotes + quotes + '"';
  const SharedFile file("quotes.csv", "a," + written + "\n1," + written + "\n");
  const auto share = read_table(world(), file.path(), {}, {.target_kind = TargetKind::labels});
  EXPECT_TRUE(share.target_names == std::vector{quotes});
  EXPECT_TRUE(share.labels == std::vector{quotes});
}

/// A table with texts full of line ends, delimiters and quotes, whose numbers follow from the row.
struct Generated {
  std::string text = "\"the\r\nnote\",x,y\n";
  std::vector<double> features, targets;
  std::vector<std::int64_t> lines;  ///< of each row

  Generated(std::size_t rows, const std::string& line_end, std::size_t padding) {
    const std::vector<std::string> notes{"\"\"",           "plain",          "\"a,b\"",
                                         "\"two\nlines\"", "\"\"\"\r\"\"\"", "\",\r\n,\n\r\""};
    for (std::size_t row = 0; row < rows; ++row) {
      lines.push_back(next_line());
      const std::string note = row + 1 == rows ? "\"\n" + std::string(padding, 'p') + "\"" : notes[row % notes.size()];
      features.push_back(static_cast<double>(row) + 0.25);
      targets.push_back(-static_cast<double>(row));
      text += fmt::format("{},{},\"{}\"{}", note, features.back(), targets.back(), line_end);
      if (row % 5 == 4) text += line_end;
    }
  }

  /// Number of the line that comes next: CR, LF and CR LF each end one.
  [[nodiscard]] std::int64_t next_line() {
    for (; counted_ < text.size(); ++counted_) {
      if (text[counted_] == '\r' || (text[counted_] == '\n' && text[counted_ - 1] != '\r')) ++line_;
    }
    return line_;
  }

 private:
  std::size_t counted_ = 0;
  std::int64_t line_ = 1;
};

TEST(TextTable, SharesFitTogetherWhereverTheyBegin) {
  // A byte more at the end moves the boundaries by 1/4 to 3/4 of a byte: each passes over every byte of the longest
  // row.
  for (const std::string line_end : {"\n", "\r\n", "\r"}) {
    for (std::size_t padding = 0; padding < 110; ++padding) {
      Generated table(12, line_end, padding);
      const SharedFile file("generated.csv", table.text);
      const auto read_rows = whole(read_table(world(), file.path(), {}, {{"x"}, {"y"}}));
      ASSERT_EQ(read_rows.features, table.features) << padding;
      ASSERT_EQ(read_rows.targets, table.targets) << padding;
    }
  }
}

TEST(TextTable, LinesAreCountedAcrossShares) {
  for (const std::string line_end : {"\n", "\r\n", "\r"}) {
    for (std::size_t padding = 0; padding < 100; padding += 7) {
      Generated table(12, line_end, padding);
      const std::size_t bad_row = padding % 11;
      const std::string number = fmt::format(",{},", table.features[bad_row]);
      table.text.replace(table.text.find(number), number.size(), ",?x?,");
      EXPECT_THAT(refusal_of_text(table.text, {{"x"}, {"y"}}),
                  HasSubstr(fmt::format("line {}, column 2 ('x'): '?x?'", table.lines[bad_row])));
    }
  }
}

TEST(TextTable, RecordsGoOverBlocks) {
  // More than a block of 256 KiB for each of four ranks, and one record that is longer than a block.
  const Generated table(80'000, "\r\n", 300'000);
  const SharedFile file("long.csv", table.text);
  const auto read_rows = whole(read_table(world(), file.path(), {}, {{"x"}, {"y"}}));
  EXPECT_TRUE(read_rows.features == table.features);
  EXPECT_TRUE(read_rows.targets == table.targets);
}

TEST(TextTable, AnyBytesAreReadOrRefused) {
  const std::string alphabet = "\"\"\",,\n\r\t ;.+-e019\x00\xFFn";
  for (const char* name : {"BASE.csv", "P01-bom.csv", "P07-trailing.csv", "P12-numbers.csv", "P15-tabs.tsv"}) {
    expect_read_or_refused(name, {".csv", ".tsv"}, [&](std::mt19937& random, std::string& text) {
      for (auto change = random() % 6 + 1; change > 0; --change) {
        const std::size_t at = random() % text.size();
        const char byte = alphabet[random() % alphabet.size()];
        if (random() % 2 == 0)
          text[at] = byte;
        else
          text.insert(at, 1, byte);
      }
    });
  }
}

}  // namespace
}  // namespace ddp::test

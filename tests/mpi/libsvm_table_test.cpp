// LIBSVM files, parsed in shares.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TableShare read_text(const std::string& content, bool zero_based = false) {
  const SharedFile file("table.svm", content);
  return read_libsvm_table(world(), {file.path()}, {.zero_based = zero_based});
}

std::string refusal_of(const std::string& content, bool zero_based = false) {
  return refusal([&] { return read_text(content, zero_based); });
}

TEST(LibsvmTable, RefusesWhatIsNoLine) {
  for (const char* word : {"2", ":1", "1:1:1", "-1:2", "1.5:2", "x:2", "2:x", "2:nan", "2:inf", "2:1e999",
                           "99999999999999999999:1", "+1:2"}) {
    EXPECT_THAT(refusal_of(fmt::format("1 1:1\n\n2 3:1 {}\n3\n", word)),
                AllOf(HasSubstr("line 3: "), HasSubstr(fmt::format("'{}'", word))));
  }
  EXPECT_THAT(refusal_of("1 1:1\n 1:1 2:1\n"), HasSubstr("line 2: it begins with '1:1', expected a label"));
  EXPECT_THAT(refusal_of("1 1:1\nnan 1:1\n"), HasSubstr("line 2: the label 'nan'"));
  EXPECT_THAT(refusal_of("1 1:1\r1 3:1 2:5 3:2\r"), HasSubstr("line 2: the index 3 occurs twice"));
}

TEST(LibsvmTable, RefusesTablesWithoutRowsOrFeatures) {
  EXPECT_THAT(refusal_of(""), HasSubstr("no data rows"));
  EXPECT_THAT(refusal_of("# a comment\n\n"), HasSubstr("no data rows"));
  EXPECT_THAT(refusal_of("1\n2\n"), HasSubstr("no feature"));
}

TEST(LibsvmTable, TakesWhatOthersWrite) {
  // A byte order mark, blanks and tabs, indices in any order, a quote in a comment, no end of the last line.
  const auto share = read_text("\xEF\xBB\xBF+1\t3:+.5 1:2   # 1\" = 2.54 cm\r\n-1 2:1e-3#x\n\n2.5 ");
  const auto table = whole(share);
  EXPECT_THAT(table.features, ElementsAre(2, 0, 0.5, 0, 1e-3, 0, 0, 0, 0));
  EXPECT_THAT(table.targets, ElementsAre(1, -1, 2.5));
}

TEST(LibsvmTable, AnIndexThatNoMemoryWouldHoldIsRefused) {
  EXPECT_THAT(refusal_of("1 1:1\n2 1099511627776:1\n"),
              AllOf(HasSubstr("2 rows of 1099511627776 features"), HasSubstr("too many")));
  EXPECT_THAT(refusal_of("1 4000000:1\n"), HasSubstr("1 rows of 4000000 features"));
  std::string long_table;
  for (int row = 0; row < 1000; ++row) long_table += "1 100000:1\n";
  EXPECT_THAT(refusal_of(long_table), AllOf(HasSubstr("0.745 GiB when no value is left out"), HasSubstr("sparse")));
  EXPECT_THAT(refusal_of("1 1000000:1\n"), HasSubstr("1 rows of 1000000 features")) << "8 MB of values, 32 of names";
  EXPECT_EQ(read_text("1 100000:1\n").feature_names.size(), 100'000U);
}

TEST(LibsvmTable, SharesGoOverBlocks) {
  std::string content;
  std::vector<double> features, targets;
  for (int row = 0; row < 60'000; ++row) {
    content += fmt::format("{} 1:{} 3:{}{}", row, 2 * row, -row, row % 2 == 0 ? "\n" : "\r\n");
    features.insert(features.end(), {2.0 * row, 0, -1.0 * row});
    targets.push_back(row);
  }
  const auto table = whole(read_text(content));
  EXPECT_TRUE(table.features == features);
  EXPECT_TRUE(table.targets == targets);
  EXPECT_THAT(refusal_of(content + "oops\n"), HasSubstr("line 60001: the label 'oops'"));
}

TEST(LibsvmTable, AnyBytesAreReadOrRefused) {
  constexpr std::string_view alphabet = " \t\r\n#:.,019-+eqid\"";
  for (const char* name : {"P42-qid-comment.svm", "P40-one-based.svm"}) {
    expect_read_or_refused(name, {".svm", ".libsvm"}, [&](std::mt19937& random, std::string& content) {
      const bool any = random() % 4 == 0;
      for (auto change = random() % 4 + 1; change > 0; --change) {
        content[random() % content.size()] =
            any ? static_cast<char>(random() % 256) : alphabet[random() % alphabet.size()];
      }
    });
  }
}

}  // namespace
}  // namespace ddp::test

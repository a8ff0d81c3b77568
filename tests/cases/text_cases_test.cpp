// Cases of text tables: CSV, TSV and LIBSVM files that broke other people's readers.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <clocale>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "support/fit.hpp"
#include "support/table_file.hpp"

namespace ddp::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string refusal_of_case(const std::string& name, const ColumnSelection& selection = {},
                            const TextFormat& format = {}) {
  return refusal([&] { return read_case(name, selection, format); });
}

nlohmann::json case_json(const std::string& name) {
  std::ifstream file(case_path(name));
  return nlohmann::json::parse(file);
}

TEST(Cases, P01_AByteOrderMarkIsNoPartOfAName) {
  for (const ColumnSelection& selection : {ColumnSelection{}, {{}, {"y"}}, {{"a", "b"}, {"y"}}}) {
    const auto share = read_case("P01-bom.csv", selection);
    EXPECT_THAT(share.feature_names, ElementsAre("a", "b"));
    expect_base_case(share);
  }
}

TEST(Cases, P02_ACarriageReturnIsPartOfTheLineEnd) {
  const auto share = read_case("P02-crlf-nofinal.csv", {{}, {"y"}});
  EXPECT_THAT(share.target_names, ElementsAre("y"));
  expect_base_case(share);
}

TEST(Cases, P04_AGapIsNoZero) {
  EXPECT_THAT(refusal_of_case("P04-missing.csv"),
              AllOf(HasSubstr("P04-missing.csv, line 5, column 2 ('b'): missing value"),
                    HasSubstr("complete the row or remove it")));
  EXPECT_THAT(refusal_of_case("P04-missing-label.csv"), HasSubstr("line 7, column 3 ('y'): missing value"));
  const auto dropped = read_case("P04-missing.csv", {.targets = {"y"}, .missing = Missing::drop});
  EXPECT_EQ(dropped.total_rows, 7);
  expect_base_model(dropped);
}

/// A locale whose decimal sign is a comma, made for the test: machines rarely have one.
class DecimalComma {
 public:
  DecimalComma()
      : definition_("comma", "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \".\"\ngrouping 3;3\nEND LC_NUMERIC\n") {
    const auto folder = std::filesystem::path(definition_.path()).parent_path().string();
    if (world().rank() == 0) {
      std::ofstream charmap(folder + "/ascii");
      charmap << "<code_set_name> ASCII\n<escape_char> /\nCHARMAP\n";
      for (int code = 0; code < 128; ++code) charmap << fmt::format("<U{0:04X}> /x{0:02x}\n", code);
      charmap << "END CHARMAP\n";
      charmap.close();
      // Its status is that of warnings about what the definition leaves out.
      static_cast<void>(
          std::system(fmt::format("cd {} && localedef --quiet -c -i ./comma -f ./ascii ./with_comma", folder).c_str()));
    }
    MPI_Barrier(world().comm());
    setenv("LOCPATH", folder.c_str(), 1);
    is_there_ = std::setlocale(LC_ALL, "with_comma") != nullptr;
  }
  ~DecimalComma() {
    std::setlocale(LC_ALL, "C");
    unsetenv("LOCPATH");
  }
  DecimalComma(const DecimalComma&) = delete;
  DecimalComma& operator=(const DecimalComma&) = delete;
  [[nodiscard]] bool is_there() const { return is_there_; }

 private:
  SharedFile definition_;
  bool is_there_ = false;
};

TEST(Cases, P05_TheDecimalSignIsTheOptionsAndNotTheLocales) {
  const ColumnSelection columns{{"a", "b"}, {"y"}};
  expect_base_case(read_case("P05-decimal-comma.csv", columns, {.delimiter = ';', .decimal = ','}));
  EXPECT_THAT(refusal_of_case("P05-decimal-comma.csv"), AllOf(HasSubstr("'a;b;y'"), HasSubstr("delimiter")));
  EXPECT_THAT(refusal_of_case("P05-decimal-comma.csv", {}, {.delimiter = ';'}),
              AllOf(HasSubstr("line 9, column 1 ('a'): '0,5' is not a number"), HasSubstr("decimal sign")));
  const DecimalComma locale;
  ASSERT_TRUE(locale.is_there()) << "localedef could not make a locale";
  ASSERT_EQ(std::strtod("0,5", nullptr), 0.5);
  expect_base_case(read_case("P05-dot.csv"));
  EXPECT_THAT(refusal_of_case("P05-decimal-comma.csv", {}, {.delimiter = ';'}), HasSubstr("'0,5' is not a number"));
}

TEST(Cases, P07_ATrailingDelimiterShiftsNothing) {
  expect_base_case(read_case("P07-trailing.csv", {{}, {"y"}}));
  expect_base_case(read_case("P07-trailing-header-too.csv", {{}, {"y"}}));
  expect_base_case(read_case("P07-trailing.csv"));  // the last column is y, not what follows the delimiter
}

TEST(Cases, P08_AHeaderIsNoRowAndARowNoHeader) {
  for (const char* name : {"P08-header.csv", "P08-header-lone-cr.csv", "P08-numeric-header.csv"}) {
    SCOPED_TRACE(name);
    expect_base_case(read_case(name, {{}, {"y"}}));
  }
  expect_base_case(read_case("P08-noheader.csv", {{}, {"#2"}}));
  EXPECT_THAT(read_case("P08-numeric-header.csv").feature_names, ElementsAre("2019", "2020"));
  EXPECT_THAT(read_case("P08-noheader.csv").feature_names, ElementsAre("#0", "#1"));
  // As told, if one insists.
  EXPECT_THAT(refusal_of_case("P08-header.csv", {}, {.header = Header::no}), HasSubstr("line 1, column 1 ('#0'): 'a'"));
  EXPECT_EQ(read_case("P08-noheader.csv", {}, {.header = Header::yes}).total_rows, 7);
}

TEST(Cases, P09_NoRowsAreRefusedAndOneIsEnough) {
  EXPECT_THAT(refusal_of_case("P09-empty.csv"), HasSubstr("no data rows"));
  EXPECT_THAT(refusal_of_case("P09-header-only.csv"), HasSubstr("no data rows"));
  expect_base_case(read_case("P09-blank-lines.csv"));
  const auto one = read_case("P09-one-row.csv", {{}, {"y"}});
  ASSERT_EQ(one.total_rows, 1);
  // 2 = w · (2, 1) + bias: the gradient's way there is along (2, 1, 1), in thirds.
  const Fit raw = fit(one, {.lr = 0.05, .epochs = 100});
  EXPECT_THAT(raw.weight, ElementsAre(FloatNear(2.F / 3, 1e-6F), FloatNear(1.F / 3, 1e-6F)));
  EXPECT_THAT(raw.bias, ElementsAre(FloatNear(1.F / 3, 1e-6F)));
  EXPECT_LT(raw.scores.loss, 1e-12);
  // A column of one value becomes 0: only the bias is left to learn.
  EXPECT_THAT(Standardizer(world(), one).scale(), ElementsAre(1, 1));
  const Fit standardized = fit_standardized(one, {.lr = 0.25, .epochs = 100});
  EXPECT_THAT(standardized.weight, ElementsAre(0, 0));
  EXPECT_THAT(standardized.bias, ElementsAre(FloatNear(2, 1e-6F)));
}

TEST(Cases, P10_ARaggedRowIsRefused) {
  EXPECT_THAT(refusal_of_case("P10-short-row.csv"), HasSubstr("P10-short-row.csv, line 4: got 2 fields, expected 3"));
  EXPECT_THAT(refusal_of_case("P10-long-row.csv"), HasSubstr("P10-long-row.csv, line 4: got 4 fields, expected 3"));
}

TEST(Cases, P11_ColumnsOfOneNameAreEachThere) {
  const auto share = read_case("P11-duplicate-names.csv", {{}, {"y"}});
  EXPECT_THAT(share.notices, ElementsAre(AllOf(HasSubstr("'a'"), HasSubstr("each is used"))));
  expect_base_case(share);
  EXPECT_THAT(refusal_of_case("P11-duplicate-target.csv", {{}, {"y"}}),
              AllOf(HasSubstr("'y'"), HasSubstr("ambiguous")));
  expect_base_case(read_case("P11-duplicate-target.csv", {{}, {"#2"}}));
}

TEST(Cases, P12_EachNumberIsTheNearestDouble) {
  const auto expected = case_json("P12-numbers.expected.json");
  std::ifstream numbers(case_path("P12-numbers.csv"));
  const auto table = whole(read_case("P12-numbers.csv"));
  ASSERT_EQ(table.rows, 15);
  std::string line;
  std::getline(numbers, line);
  for (const double value : table.features) {
    std::getline(numbers, line);
    const std::string token = line.substr(0, line.find(','));
    const double right = std::strtod(expected.at(token).get<std::string>().c_str(), nullptr);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(value), std::bit_cast<std::uint64_t>(right)) << token;
  }
}

TEST(Cases, P13_WhatIsNoNumberIsNotReadInPart) {
  const std::map<std::string, std::string> why{{"nan", "missing value"},    {"NaN", "missing value"},
                                               {"NA", "missing value"},     {"inf", "not finite"},
                                               {"-Infinity", "not finite"}, {"1e400", "out of range"}};
  const auto tokens = case_json("P13-index.json");
  ASSERT_EQ(tokens.size(), 12U);
  for (const auto& [name, token] : tokens.items()) {
    std::string text = token;
    std::erase(text, '"');
    const auto told = why.find(text);
    EXPECT_THAT(refusal_of_case(name, {{}, {"y"}}),
                AllOf(HasSubstr(name + ", line 6, column 2 ('b')"), HasSubstr("'" + text + "'"),
                      HasSubstr(told != why.end() ? told->second : "not a number")));
  }
}

TEST(Cases, P15_BlanksAroundFieldsAreNone) {
  const auto spaces = read_case("P15-spaces.csv", {{}, {"y"}});
  EXPECT_THAT(spaces.feature_names, ElementsAre("a", "b"));
  expect_base_case(spaces);
  expect_base_case(read_case("P15-tabs.tsv", {{}, {"y"}}));
  const FileOptions as_csv{.format = FileFormat::csv, .keys = {}, .zero_based = false, .targets_file = {}};
  expect_base_case(read_table(world(), case_path("P15-tabs.tsv"), {.delimiter = '\t'}, {{}, {"y"}}, as_csv));
}

TableShare read_zero_based(const std::string& name) {
  return read_libsvm_table(world(), {case_path(name)}, {.zero_based = true});
}

TEST(Cases, P40_IndicesStartAtOneUnlessToldOtherwise) {
  const auto one = read_case("P40-one-based.svm"), zero = read_zero_based("P40-zero-based.svm");
  expect_base_case(one);
  expect_base_case(zero);
  // Names keep a model's features apart, wherever they started.
  EXPECT_THAT(one.feature_names, ElementsAre("1", "2"));
  EXPECT_THAT(zero.feature_names, ElementsAre("0", "1"));
  EXPECT_THAT(refusal_of_case("P40-zero-based.svm"), AllOf(HasSubstr("line 2: '0:1'"), HasSubstr("--zero-based")));
  // y = 3x on x = 1, 2, 3.
  const Fit ambiguous = fit(read_case("P40-ambiguous.svm"), {.lr = 0.1, .epochs = 1000});
  EXPECT_THAT(ambiguous.weight, ElementsAre(FloatNear(3, 1e-5F)));
  EXPECT_THAT(ambiguous.bias, ElementsAre(FloatNear(0, 1e-5F)));
  const Fit two = fit(read_zero_based("P40-ambiguous.svm"), {.lr = 0.1, .epochs = 1000});
  EXPECT_THAT(two.weight, ElementsAre(0, FloatNear(3, 1e-5F)));
  EXPECT_THAT(one.target_names, ElementsAre("label"));
}

TEST(Cases, P42_QueriesAndCommentsAreNoFeatures) {
  const auto share = read_case("P42-qid-comment.svm");
  const auto table = whole(share);
  EXPECT_EQ(table.features, (std::vector<double>{1, 0, 0, 1, 1, 1, 2, 1, 3, -1, -1, 2, 0, 0}));
  EXPECT_THAT(table.targets, ElementsAre(3, -2, 0, 2, 10, -7, 1));
  EXPECT_THAT(share.notices, ElementsAre(HasSubstr("qid:")));
  EXPECT_THAT(read_case("P40-one-based.svm").notices, IsEmpty());
  expect_base_model(share);
  EXPECT_THAT(refusal_of_case("P42-multilabel.svm"),
              AllOf(HasSubstr("P42-multilabel.svm, line 1: "), HasSubstr("'1,3'")));
  EXPECT_THAT(refusal_of_case("P42-crlf-badvalue.svm"),
              HasSubstr("P42-crlf-badvalue.svm, line 3: '2:' is not index:value"));
}

}  // namespace
}  // namespace ddp::test

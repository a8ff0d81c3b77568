#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <random>
#include <string>

#include <linear_ddp/data/number.hpp>
#include <linear_ddp/data/plain_number.hpp>

namespace ddp {
namespace {

std::optional<double> plain(const std::string& text, char decimal = '.') {
  // What comes next in a table must not become part of the number.
  const std::string padded = text + ",987654321987654321";
  double value = 0;
  if (!parse_plain_number(padded.data(), padded.data() + text.size(), decimal, value)) return std::nullopt;
  return value;
}

struct Agreement {
  int texts = 0, plain = 0;
};

/// Compares with the C library's strtod, which rounds correctly; counts what was plain.
void expect_as_strtod(const std::string& text, Agreement& agreement) {
  const double right = std::strtod(text.c_str(), nullptr);
  const auto same = [&](double ours) { return ours == right && std::signbit(ours) == std::signbit(right); };
  EXPECT_TRUE(same(parse_number(text, '.').value)) << text;
  const auto quick = plain(text);
  EXPECT_TRUE(!quick || same(*quick)) << text << " became " << fmt::format("{}", *quick);
  ++agreement.texts;
  agreement.plain += quick.has_value();
}

TEST(Number, IsTheNearestDoubleForEveryLengthAndEveryPlaceOfThePoint) {
  std::mt19937_64 random(1);
  for (int before = 0; before <= 8; ++before) {
    for (int behind = 0; behind <= 20; ++behind) {
      Agreement agreement;
      for (int repeat = 0; repeat < 200 && before + behind > 0; ++repeat) {
        std::string text = random() % 2 ? "-" : "";
        for (int i = 0; i < before; ++i) text += static_cast<char>('0' + random() % 10);
        if (behind > 0 || random() % 2) text += '.';
        for (int i = 0; i < behind; ++i) text += static_cast<char>('0' + random() % 10);
        expect_as_strtod(text, agreement);
      }
      const bool quick = before + behind > 0 && before <= 7 && before + behind <= 18;
      EXPECT_TRUE(!quick || agreement.plain > 0.99 * agreement.texts) << before << " digits, point, " << behind;
    }
  }
}

TEST(Number, IsTheNearestDoubleWhereRoundingTwiceIsNot) {
  std::mt19937_64 random(2);
  Agreement agreement;
  int misled = 0;
  for (int i = 0; i < 300'000; ++i) {
    const std::string text = fmt::format("0.{:018}", random() % 1'000'000'000'000'000'000);
    expect_as_strtod(text, agreement);
    misled += static_cast<double>(std::strtold(text.c_str(), nullptr)) != std::strtod(text.c_str(), nullptr);
  }
  EXPECT_TRUE(misled > 20 || LDBL_MANT_DIG != 64) << misled << " texts that 64 bits and then 53 would get wrong";
  EXPECT_GT(agreement.plain, 0.99 * agreement.texts);
}

TEST(Number, OfATableOfSixOrSeventeenDigitsIsPlainAndNearest) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const int digits : {6, 17}) {
    Agreement agreement;
    for (int i = 0; i < 200'000; ++i) expect_as_strtod(fmt::format("{:.{}g}", normal(random), digits), agreement);
    EXPECT_GT(agreement.plain, 0.98 * agreement.texts) << digits;  // the others have an exponent, or many zeros
  }
}

TEST(Number, OfManyZerosKeepsItsExponent) {
  Agreement agreement;
  for (int zeros = 0; zeros < 40; ++zeros) {
    expect_as_strtod("0." + std::string(static_cast<std::size_t>(zeros), '0') + "123", agreement);
    expect_as_strtod("-." + std::string(static_cast<std::size_t>(zeros), '0') + "9007199254740993", agreement);
    expect_as_strtod("1." + std::string(static_cast<std::size_t>(zeros), '0'), agreement);
  }
  EXPECT_GT(agreement.plain, 40);
}

TEST(Number, ThatIsNotPlainIsLeftToTheOthers) {
  for (const char* text : {"",
                           "-",
                           ".",
                           "-.",
                           "+1",
                           "--1",
                           "- 1",
                           " 1",
                           "1 ",
                           "1e5",
                           "1.5e3",
                           "1.2.3",
                           "1..2",
                           "1-2",
                           "1,5",
                           "0x10",
                           "nan",
                           "inf",
                           "12345678",
                           "1:2",
                           "1/2",
                           "1.2/",
                           "1.;",
                           "12345.678x",
                           "0.1234567890x",
                           "9.9999999999999999999"}) {
    EXPECT_EQ(plain(text), std::nullopt) << text;
  }
  EXPECT_EQ(plain("1,5", ','), 1.5);
  EXPECT_EQ(plain("1.5", ','), std::nullopt);
}

}  // namespace
}  // namespace ddp

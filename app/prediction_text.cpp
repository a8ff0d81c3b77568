#include "prediction_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/data/number.hpp>
#include <linear_ddp/training/evaluation.hpp>

namespace ddp::app {
namespace {

/// As RFC 4180 has it.
std::string csv_field(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

/// Of the classes, from one logit or several; those of one class add up to 1 but for rounding.
std::vector<double> probabilities_of(std::span<const double> outputs) {
  if (outputs.size() == 1) return {1 / (1 + std::exp(outputs[0])), 1 / (1 + std::exp(-outputs[0]))};
  const double highest = *std::max_element(outputs.begin(), outputs.end());
  std::vector<double> probabilities;
  double sum = 0;
  for (const double z : outputs) sum += probabilities.emplace_back(std::exp(z - highest));
  for (double& p : probabilities) p /= sum;
  return probabilities;
}

template <class T>
void append_bytes(std::string& text, T value) {
  static_assert(std::endian::native == std::endian::little, "arrays are written in this machine's order");
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

PredictionText::PredictionText(const StoredModel& model, Task task, bool probabilities, bool is_array)
    : task_(task), probabilities_(probabilities), is_array_(is_array), is_f64_(model.is_f64) {
  const auto outputs = static_cast<std::size_t>(model.shape.out);
  if (task == Task::regression) {
    for (std::size_t o = 0; o < outputs; ++o) {
      columns_.push_back(!model.target_names.empty() ? csv_field(model.target_names[o])
                         : outputs == 1              ? "prediction"
                                                     : fmt::format("prediction_{}", o));
    }
    return;
  }
  auto classes = model.classes;  // a model without names numbers them
  for (std::size_t c = classes.size(); c < (task == Task::binary ? 2 : outputs); ++c) {
    classes.push_back(std::to_string(c));
  }
  columns_.push_back(model.target_names.empty() ? "label" : csv_field(model.target_names[0]));
  for (const auto& name : classes) {
    labels_.push_back(csv_field(name));
    if (probabilities) columns_.push_back(csv_field("probability_" + name));
    if (!is_array) continue;
    const Number number = parse_number(name, '.');
    if (number.fault != NumberFault::none) {
      throw UseError(
          fmt::format("the class '{:.40}' is no number, which an .npy array could hold: --out FILE.csv", name));
    }
    label_values_.push_back(number.value);
  }
}

std::string PredictionText::head(std::int64_t rows) const {
  if (!is_array_) return fmt::format("{}\n", fmt::join(columns_, ","));
  // https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html: the values begin at a multiple of 64 bytes.
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}, {}), }}",
                                   task_ == Task::regression && !is_f64_ ? "<f4" : "<f8", rows, columns_.size());
  constexpr std::size_t before = 10;
  header.append(64 - (before + header.size() + 1) % 64, ' ');
  header += '\n';
  std::string head("\x93NUMPY\x01\x00", 8);
  append_bytes(head, static_cast<std::uint16_t>(header.size()));
  return head + header;
}

void PredictionText::append_number(std::string& text, double value) const {
  if (!is_array_) {
    is_f64_ ? fmt::format_to(std::back_inserter(text), "{}", value)
            : fmt::format_to(std::back_inserter(text), "{}", static_cast<float>(value));
  } else if (task_ == Task::regression && !is_f64_) {
    append_bytes(text, static_cast<float>(value));
  } else {
    append_bytes(text, value);
  }
}

void PredictionText::append(std::string& text, std::span<const double> outputs) const {
  bool first = true;
  const auto append_value = [&](double value) {
    if (!is_array_ && !first) text += ',';
    append_number(text, value);
    first = false;
  };
  if (task_ == Task::regression) {
    for (const double value : outputs) append_value(value);
  } else {
    const std::size_t told = told_class(outputs);
    if (is_array_)
      append_bytes(text, label_values_[told]);
    else
      text += labels_[told];
    first = false;
    if (probabilities_) {
      for (const double p : probabilities_of(outputs)) append_value(p);
    }
  }
  if (!is_array_) text += '\n';
}

}  // namespace ddp::app

#include "scores.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace ddp::app {
namespace {

TargetScores mean_of(const std::vector<TargetScores>& targets) {
  TargetScores mean;
  const auto count = static_cast<double>(targets.size());
  for (const auto& target : targets) {
    mean.mse += target.mse / count;
    mean.rmse += target.rmse / count;
    mean.mae += target.mae / count;
    mean.r2 += target.r2 / count;
  }
  return mean;
}

nlohmann::ordered_json to_json(const TargetScores& target) {
  return {{"mse", target.mse}, {"rmse", target.rmse}, {"mae", target.mae}, {"r2", target.r2}};
}

}  // namespace

const char* score_name(Task task) {
  return task == Task::regression ? "r2" : "accuracy";
}

std::string in_words(const Scores& scores) {
  if (!scores.classes) {
    const TargetScores mean = mean_of(scores.targets);
    return fmt::format("R2 {:.7g}, RMSE {:.7g}, MAE {:.7g}", mean.r2, mean.rmse, mean.mae);
  }
  const ClassScores& classes = *scores.classes;
  return fmt::format("accuracy {:.7g}, balanced {:.7g}, log-loss {:.7g}{}", classes.accuracy, classes.balanced_accuracy,
                     classes.log_loss,
                     std::isnan(classes.roc_auc) ? "" : fmt::format(", ROC AUC {:.7g}", classes.roc_auc));
}

nlohmann::ordered_json to_json(const Scores& scores, const std::vector<std::string>& target_names) {
  nlohmann::ordered_json json{{"rows", scores.rows}, {"loss", scores.loss}};
  if (scores.classes) {
    json["log_loss"] = scores.classes->log_loss;
    json["accuracy"] = scores.classes->accuracy;
    json["balanced_accuracy"] = scores.classes->balanced_accuracy;
    json["roc_auc"] = scores.classes->roc_auc;  // null when there is none
    return json;
  }
  json.update(to_json(mean_of(scores.targets)));
  for (std::size_t i = 0; scores.targets.size() > 1 && i < scores.targets.size(); ++i) {
    auto one = to_json(scores.targets[i]);
    one["name"] = i < target_names.size() ? target_names[i] : fmt::format("#{}", i);
    json["targets"].push_back(one);
  }
  return json;
}

std::vector<std::string> confusion_lines(const ClassScores& scores, const std::vector<std::string>& classes) {
  std::vector<std::string> lines;
  std::size_t width = 1;
  for (const auto& name : classes) width = std::max(width, name.size());
  for (const auto count : scores.confusion) width = std::max(width, std::to_string(count).size());
  std::string head = fmt::format("{:>{}}", "", width);
  for (const auto& name : classes) head += fmt::format("  {:>{}}", name, width);
  lines.push_back(head + "   <- told, for the class at the left");
  for (std::size_t row = 0; row < classes.size(); ++row) {
    std::string line = fmt::format("{:>{}}", classes[row], width);
    for (std::size_t column = 0; column < classes.size(); ++column) {
      line += fmt::format("  {:>{}}", scores.confusion[row * classes.size() + column], width);
    }
    lines.push_back(line);
  }
  return lines;
}

nlohmann::ordered_json confusion_json(const ClassScores& scores) {
  const auto classes = static_cast<std::size_t>(std::sqrt(static_cast<double>(scores.confusion.size())) + 0.5);
  auto rows = nlohmann::ordered_json::array();
  for (std::size_t row = 0; row < classes; ++row) {
    const auto begin = scores.confusion.begin() + static_cast<std::ptrdiff_t>(row * classes);
    rows.push_back(std::vector<std::int64_t>(begin, begin + static_cast<std::ptrdiff_t>(classes)));
  }
  return rows;
}

}  // namespace ddp::app

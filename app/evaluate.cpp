#include <fmt/format.h>

#include <linear_ddp/base/error.hpp>
#include <linear_ddp/base/version.hpp>
#include <linear_ddp/data/split.hpp>
#include <linear_ddp/device/select.hpp>
#include <linear_ddp/launch/agree.hpp>
#include <linear_ddp/training/evaluation.hpp>
#include "commands.hpp"
#include "console.hpp"
#include "model_file.hpp"
#include "scores.hpp"
#include "training_data.hpp"

namespace ddp::app {
namespace {

/// Collective. The table as the model wants it; its classes are the model's, or where that has none its own.
TableShare read_for(const World& world, const UseOptions& options, StoredModel& stored, Task task) {
  const auto kind = task == Task::regression ? TargetKind::numbers : TargetKind::labels;
  ColumnSelection columns = columns_of(stored, options.columns, kind);
  columns.leaves_features = true;
  TableShare share = read_table(world, options.data, options.text, columns, options.file);
  agree(world, [&] {
    require_features(stored, share);
    if (task == Task::regression) {
      if (std::ssize(share.target_names) == stored.shape.out) return;
      throw UseError(fmt::format("{}: {} target{} for a model of {} outputs; name them with --target", options.data,
                                 share.target_names.size(), share.target_names.size() == 1 ? "" : "s",
                                 stored.shape.out));
    }
    if (stored.classes.empty()) {
      const std::int64_t classes = task == Task::binary ? 2 : stored.shape.out;
      if (std::ssize(share.labels) != classes) {
        throw UseError(fmt::format("{}: the model does not name its {} classes, and the target has {}", options.data,
                                   classes, share.labels.size()));
      }
      stored.classes = share.labels;
    }
    use_classes(share, stored.classes);
  });
  return share;
}

void report(Console& console, const UseOptions& options, const StoredModel& stored, Task task, const Scores& scores,
            const TableShare& share) {
  console.line("scores", fmt::format("{} rows: {}", scores.rows, in_words(scores)));
  nlohmann::ordered_json event{{"event", "evaluate"},
                               {"version", version()},
                               {"model", options.model},
                               {"data", options.data},
                               {"task", name_of(task)}};
  event.update(to_json(scores, share.target_names));
  if (options.confusion) {
    if (scores.classes->confusion.empty()) {
      throw UseError(fmt::format("--confusion: {} classes are too many, more than {}", stored.classes.size(),
                                 ClassScores::most_confused));
    }
    for (const auto& line : confusion_lines(*scores.classes, stored.classes)) console.line("confusion", line);
    event["classes"] = stored.classes;
    event["confusion"] = confusion_json(*scores.classes);
  }
  console.event(event);
}

}  // namespace

void evaluate_model(const World& world, const UseOptions& options, Watchdog& watchdog) {
  Console console(options.quiet || world.rank() != 0, open_metrics(world, options.metrics));
  StoredModel stored = agree(world, [&] { return read_model(options.model); });
  const Task task = agree(world, [&] {
    const Task own = stored.task_or(options.given_task, options.model);
    if (options.confusion && own == Task::regression) throw UseError("--confusion needs a model of classes");
    return own;
  });
  TableShare share = read_for(world, options, stored, task);
  print_notices(world, share.notices);
  const Dataset data = gather_dataset(world, share, options.residence);
  print_notices(world, data.notices);

  auto watch = std::make_unique<Watchdog::Watch>(watchdog, "start of the devices", 0);
  const SelectedDevice selected = select_device(world, options.device);
  Model model = agree(world, [&] {
    Model made(*selected.device, stored.shape, {.kind = stored.loss_kind(task)});
    std::size_t slot = 0;
    for (const LinearValues& layer : stored.layers) {
      for (const auto* values : {&layer.weight, &layer.bias}) {
        if (!values->empty()) made.upload(slot++, std::vector<float>(values->begin(), values->end()));
      }
    }
    return made;
  });
  watch.reset();
  const Scores scores = evaluate(world, *selected.device, model, data);
  console.line("model", fmt::format("{}: {}, {}", options.model, stored.shape.description(), name_of(task)));
  console.start_event({{"event", "start"}, {"version", version()}, {"world_size", world.size()}});
  agree(world, [&] { report(console, options, stored, task, scores, share); });
}

}  // namespace ddp::app

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <linear_ddp/data/feature_source.hpp>
#include <linear_ddp/data/libsvm_parser.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// Bytes of a table's features when only those that are given are kept.
[[nodiscard]] double bytes_of_sparse(std::int64_t rows, std::int64_t values);

/// Collective. The features of all ranks' rows, those that are given, in memory that the ranks of a host share. `own`
/// are this rank's rows, which are at `pieces` of the table; their indices begin at `base`. `notices` gets what a
/// person should know. Throws AgreedError when there is no memory, or for more features than 2^31 - 1.
[[nodiscard]] std::shared_ptr<FeatureSource> share_sparse(const World& world, const SparseRows& own,
                                                          const std::vector<RowRange>& pieces, std::int64_t total_rows,
                                                          std::int64_t base, std::vector<std::string> names,
                                                          const std::string& path, std::vector<std::string>& notices);

}  // namespace ddp

#pragma once

#include <linear_ddp/launch/world.hpp>

namespace ddp::test {

/// The ranks this test binary was started with.
const World& world();

}  // namespace ddp::test

#pragma once

#include <memory>
#include <string>

#include <linear_ddp/data/byte_source.hpp>
#include <linear_ddp/data/zip_directory.hpp>
#include <linear_ddp/launch/world.hpp>

namespace ddp {

/// The member's content, inflated as it is read, through a buffer of bounded size. Its end checks the CRC-32 of a
/// compressed one. Throws UseError for encryption, for compression other than deflate, and for sizes that cannot be.
[[nodiscard]] std::unique_ptr<ByteSource> open_zip_member(std::string name, const InputFile& file,
                                                          const ZipMember& member);

/// Collective. Checks the CRC-32 of a member that is not compressed; each rank reads its part of it. (Of a compressed
/// one the ranks check it when they read: the last rank has to inflate all of it, and so do the others meanwhile.)
void require_zip_crc(const World& world, const std::string& name, const InputFile& file, const ZipMember& member);

}  // namespace ddp

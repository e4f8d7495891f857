// SPDX-License-Identifier: BSD-3-Clause
#include "core/base/memory_file.hpp"

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace viaduct {

Result<UniqueFd> create_memory_file(const char* name, std::size_t size) noexcept {
    rlimit limit{};
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && size > limit.rlim_cur)
        return Status(Code::NoResources, "RLIMIT_FSIZE is too low for shared memory");
    UniqueFd file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!file) return Status::from_errno(errno, "memfd_create");
    if (ftruncate(file.get(), static_cast<off_t>(size)) == 0) return file;
    return Status::from_errno(errno == EFBIG || errno == EINVAL ? ENOMEM : errno, "ftruncate of a memfd");
}

}  // namespace viaduct

// SPDX-License-Identifier: BSD-3-Clause
#include "tools/run/elf_file.hpp"

#include <link.h>

#include <cstring>
#include <fstream>
#include <sstream>

namespace viaduct::run {
namespace {

#if defined(__x86_64__)
constexpr auto own_machine = EM_X86_64;
#elif defined(__aarch64__)
constexpr auto own_machine = EM_AARCH64;
#else
constexpr auto own_machine = EM_NONE;
#endif
constexpr unsigned char own_class = sizeof(void*) == sizeof(std::uint64_t) ? ELFCLASS64 : ELFCLASS32;

/// The bytes of a file. Reading outside of them gives zeros and empty strings: files may be damaged.
class Bytes {
public:
    explicit Bytes(std::string bytes) : bytes_(std::move(bytes)) {}

    template <typename T>
    T at(std::size_t offset) const {
        T value{};
        if (offset <= bytes_.size() && sizeof(T) <= bytes_.size() - offset)
            std::memcpy(&value, bytes_.data() + offset, sizeof(T));
        return value;
    }

    std::string string_at(std::size_t offset) const {
        if (offset >= bytes_.size()) return {};
        return bytes_.substr(offset, bytes_.find('\0', offset) - offset);
    }

private:
    std::string bytes_;
};

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Entry = ElfW(Dyn);

std::vector<Segment> segments_of(const Bytes& bytes, const Header& header) {
    std::vector<Segment> segments;
    for (unsigned number = 0; number < header.e_phnum; ++number)
        segments.push_back(bytes.at<Segment>(header.e_phoff + number * sizeof(Segment)));
    return segments;
}

std::size_t offset_of(std::size_t address, const std::vector<Segment>& segments) {
    for (const auto& segment : segments)
        if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz)
            return segment.p_offset + (address - segment.p_vaddr);
    return std::string::npos;
}

std::vector<Entry> entries_of(const Bytes& bytes, const Segment& dynamic) {
    std::vector<Entry> entries;
    for (std::size_t offset = 0; offset + sizeof(Entry) <= dynamic.p_filesz; offset += sizeof(Entry)) {
        entries.push_back(bytes.at<Entry>(dynamic.p_offset + offset));
        if (entries.back().d_tag == DT_NULL) break;
    }
    return entries;
}

void read_dynamic(const Bytes& bytes, const std::vector<Segment>& segments, const Segment& dynamic, ElfFile& file) {
    const auto entries = entries_of(bytes, dynamic);
    std::size_t strings = std::string::npos;
    for (const auto& entry : entries)
        if (entry.d_tag == DT_STRTAB) strings = offset_of(entry.d_un.d_ptr, segments);
    if (strings == std::string::npos) return;
    bool has_runpath = false;
    for (const auto& entry : entries) {
        if (entry.d_tag == DT_NEEDED) file.needed.push_back(bytes.string_at(strings + entry.d_un.d_val));
        if (entry.d_tag == DT_RPATH) file.rpath = bytes.string_at(strings + entry.d_un.d_val);
        if (entry.d_tag == DT_RUNPATH) has_runpath = true;
    }
    if (has_runpath) file.rpath.clear();  // the linker ignores it then
}

}  // namespace

std::optional<ElfFile> read_elf(const std::filesystem::path& path) {
    std::ifstream stream(path, std::ios::binary);
    std::ostringstream copy;
    copy << stream.rdbuf();
    const Bytes bytes(copy.str());
    const auto header = bytes.at<Header>(0);
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
    ElfFile file;
    file.native = header.e_ident[EI_CLASS] == own_class && header.e_machine == own_machine;
    if (!file.native) return file;
    const auto segments = segments_of(bytes, header);
    for (const auto& segment : segments) {
        if (segment.p_type == PT_INTERP) file.interpreter = bytes.string_at(segment.p_offset);
        if (segment.p_type == PT_DYNAMIC) read_dynamic(bytes, segments, segment, file);
    }
    return file;
}

}  // namespace viaduct::run

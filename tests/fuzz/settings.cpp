// SPDX-License-Identifier: BSD-3-Clause
// The values of the variables VIADUCT_*, and names of devices.
#include "core/base/settings.hpp"

#include "core/base/check_spec.hpp"
#include "core/base/fault_spec.hpp"
#include "core/provider.hpp"
#include "tests/fuzz/target.hpp"

using namespace viaduct;
using namespace viaduct::fuzz;

namespace {

bool is_part(std::string_view part, std::string_view text) {
    return part.empty() || (part.data() >= text.data() && part.data() + part.size() <= text.data() + text.size());
}

void check_faults(std::string_view text) {
    FaultSpec spec;
    const std::string_view wrong = parse_faults(text, spec);
    expect(is_part(wrong, text));
    if (!wrong.empty()) return;
    expect(spec.delay.count() >= 0 && spec.jitter.count() >= 0);
    for (const double share : {spec.drop, spec.no_receive, spec.reject}) expect(share >= 0 && share <= 1);
}

}  // namespace

int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    Input input(data, size);
    const auto what = input.take<std::uint8_t>();
    const Octets copy = copy_of(input.rest());
    const std::string_view text(reinterpret_cast<const char*>(copy.data()), copy.size());
    CheckSpec checks;
    switch (what % 5) {
        case 0: check_faults(text); break;
        case 1: {
            const std::string_view wrong = parse_checks(text, checks);
            expect(wrong == "," || is_part(wrong, text));
            break;
        }
        case 2:
            if (const auto pmem = PmemSetting::parse(text)) expect(pmem->cuts || (pmem->flush == 0 && pmem->seed == 0));
            break;
        case 3:
            for (const NumberSetting& setting : number_settings)
                if (const auto number = setting.parse(text))
                    expect(*number >= setting.least && *number <= setting.most);
            break;
        default: (void)find_device(text);
    }
    return 0;
}

// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/port/scan.hpp"

using namespace viaduct::port;

namespace {

using Words = std::vector<std::string>;

/// The names that a source uses, each with the kind of its use.
Words uses_of(const std::string& source) {
    std::uint32_t disabled = 0;
    Words uses;
    const Tokens tokens = tokenize(source);
    for (const auto& use : find_uses(tokens, disabled)) uses.push_back(use.name + " " + std::string(text_of(use.kind)));
    return uses;
}

Words warnings_of(const std::string& source) {
    std::uint32_t disabled = 0;
    const Tokens tokens = tokenize(source);
    std::vector<Warning> warnings;
    find_warnings(tokens, find_uses(tokens, disabled), warnings);
    Words names;
    for (const auto& warning : warnings) names.emplace_back(about(warning.rule).name);
    return names;
}

constexpr const char* opening = "int f(void) { VipCloseNic(nic); }\n";  // so that a source uses an API

}  // namespace

TEST_CASE("port_scan: calls, references and declarations") {
    CHECK(uses_of("x = VipOpenNic(a, b);") == Words{"VipOpenNic call"});
    CHECK(uses_of("return VipOpenNic(a, b);") == Words{"VipOpenNic call"});
    CHECK(uses_of("x = a * VipOpenNic(a, b); y = c && VipOpenNic(d, e);") ==
          Words{"VipOpenNic call", "VipOpenNic call"});
    CHECK(uses_of("return a & VipDisconnect(v); return a * VipOpenNic(b);") ==
          Words{"VipDisconnect call", "VipOpenNic call"});
    CHECK(uses_of("case DAT_SUCCESS ... DAT_TIMEOUT_EXPIRED:") ==
          Words{"DAT_SUCCESS reference", "DAT_TIMEOUT_EXPIRED reference"});
    CHECK(uses_of("extern VIP_RETURN VipOpenNic(int, int);") ==
          Words{"VIP_RETURN reference", "VipOpenNic declaration"});
    CHECK(uses_of("const char *rpma_err_2str(int);") == Words{"rpma_err_2str declaration"});
    CHECK(uses_of("f = VipOpenNic;") == Words{"VipOpenNic reference"});
    CHECK(uses_of("#ifdef SHUTDOWN\nVipDisconnect(vi);\n#endif\n#define LOW (3)\nint *VipOpenNic(int);\n") ==
          Words{"VipDisconnect call", "VipOpenNic declaration"});
    CHECK(uses_of("void f(void) {\nBEGIN_THREADS\nVipDisconnect(vi); }\nint\nVipOpenNic(int);\n") ==
          Words{"VipDisconnect call", "VipOpenNic declaration"});
    CHECK(uses_of("typedef VIP_ULONG (*hash)(int);") == Words{"VIP_ULONG call"});
    CHECK(uses_of("#define OPEN VipOpenNic(a, b)\n") == Words{"VipOpenNic call"});
    CHECK(uses_of("#define VIP_INFINITE 1\n") == Words{"VIP_INFINITE declaration"});
    CHECK(uses_of("p->rpma_read(a); p.rpma_read = b; q.vi.VipPostSend (c);") ==
          Words{"rpma_read member call", "VipPostSend member call"});
    CHECK(uses_of("p->VIP_SUCCESS(a); p->vi; p->VipFly(b);").empty());
    CHECK(uses_of("/* VipOpenNic(a) */ \"VipOpenNic(b)\"").empty());
    CHECK(uses_of("IN OUT").empty());
    CHECK(uses_of("int\nmain(argc, argv)\nint argc; char **argv;\n{ VipCloseNic(nic); }") == Words{"VipCloseNic call"});
}

TEST_CASE("port_scan: names that look like those of an API") {
    CHECK(uses_of("x = VIP_MINE; DAT_MINE y; dat_fly(a); VipMine z;") == Words{"VipMine reference"});
    CHECK(uses_of("f(VIP_SUCCESS, VIP_MINE); VipMine x; DAT_MINE z; dat_walk(a);") ==
          Words{"VIP_SUCCESS reference", "VIP_MINE reference", "VipMine reference"});
    CHECK(uses_of("f(DAT_SUCCESS); DAT_FOO_BAR x; dat_ib_post_new(); dat_foo(); dat_name = 1;") ==
          Words{"DAT_SUCCESS reference", "DAT_FOO_BAR reference", "dat_ib_post_new call", "dat_foo call"});
    CHECK(uses_of("rpma_peer_delete(&p); x = RPMA_FOO;") == Words{"rpma_peer_delete call", "RPMA_FOO reference"});
    CHECK(uses_of("f(VIP_SUCCESS);\n#ifdef A\nVipMine = 1;\n#endif\n") ==
          Words{"VIP_SUCCESS reference", "VipMine reference"});
    CHECK(uses_of("#if VIP_MINE > 1 || defined(VIP_OTHER)\n#endif\nx = VIP_SUCCESS; p->VIP_MINE = 1;\n"
                  "#define V(n) VIP_ ## n, n ## VIP_X, #n\n") == Words{"VIP_SUCCESS reference"});
    for (const char* declaration :
         {"typedef int VipMine;", "enum { VipMine };", "struct VipMine { int a; };", "class VipMine : A {};",
          "using VipMine = int;", "static int VipMine = 1;", "void f(int a, char *VipMine);", "int VipMine[3];",
          "#define VipMine 1\n", "#ifdef VipMine\n#endif\n", "int VipMine(void);"}) {
        INFO(declaration);
        CHECK(uses_of(declaration) == Words{"VipMine declaration"});
    }
}

TEST_CASE("port_scan: libibverbs belongs to librpma only in sources that use it") {
    CHECK(uses_of("x = IBV_WC_SUCCESS;").empty());
    CHECK(uses_of("#include <librpma.h>\nx = IBV_WC_SUCCESS;") ==
          Words{"librpma.h include", "IBV_WC_SUCCESS reference"});
    CHECK(uses_of("#include \"nic/vipl.h\"\n#include <dat2/dat_error.h>\n#include <mine.h>\n") ==
          Words{"vipl.h include", "dat_error.h include"});
}

TEST_CASE("port_scan: warnings") {
    const std::string use = opening;
    CHECK(warnings_of(use).empty());
    CHECK(warnings_of("x = VIP_SERVICE_UNRELIABLE;") == Words{"unreliable"});
    CHECK(warnings_of("x = VIP_SERVICE_RELIABLE_DELIVERY;").empty());
    CHECK(warnings_of("x = VIP_SERVICE_RELIABLE_RECEPTION;") == Words{"reliable-reception"});
    CHECK(warnings_of(use + "a->DiscriminatorLen = 2;").empty());
    CHECK(warnings_of(use + "a->DiscriminatorLen = 5;") == Words{"discriminator"});
    CHECK(warnings_of(use + "a->DiscriminatorLen = sizeof(int);") == Words{"discriminator"});
    CHECK(warnings_of(use + "if (a->DiscriminatorLen == 5)").empty());
    CHECK(warnings_of("VipOpenNic(\"VINIC\", &nic);") == Words{"device-name"});
    CHECK(warnings_of("dat_ia_open(\"mine\", 8, &evd, &ia);") == Words{"device-name"});
    CHECK(warnings_of(use + "char *names[] = {\"/dev/clanvi0\", \"nick\", \"via\"};") == Words{"device-name"});
    CHECK(warnings_of("VipCreateCQ(nic, 1024, &cq);").empty());
    CHECK(warnings_of("#define N (1 << 20)\nVipCreateCQ(nic, N * 2, &cq);") == Words{"depth-limit"});
    CHECK(warnings_of("rpma_conn_cfg_set_sq_size(cfg, 65536);") == Words{"depth-limit"});
    CHECK(warnings_of(use + "void *p; x = (VIP_UINT32)p;") == Words{"pointer-in-32-bits"});
    CHECK(warnings_of(use + "x = (unsigned int)&y; z = (int)malloc(9);") ==
          Words{"pointer-in-32-bits", "pointer-in-32-bits"});
    CHECK(warnings_of("#include <vipl.h>\nchar *buf;\nint x = (VIP_UINT32)buf;") == Words{"pointer-in-32-bits"});
    CHECK(warnings_of("char *buf;\n" + use + "x = (VIP_UINT32)buf;") == Words{"pointer-in-32-bits"});
    CHECK(
        warnings_of(use + "f(VIP_DESCRIPTOR *d, void *p) { x = (int)(long)d; y = (VIP_UINT32)(unsigned long)(p); }") ==
        Words{"pointer-in-32-bits", "pointer-in-32-bits"});
    CHECK(warnings_of(use + "void *p; x = (long)p; y = (int)(long)a; z = (int)(a * p);").empty());
    CHECK(warnings_of(use + "void *p; x = (VIP_UINT64)p; y = (int)*p; z = (int)p->a; n = sizeof(int) & 3;").empty());
    CHECK(warnings_of("VipRecvNotify(vi, 0, f); while (VipRecvDone(vi, &d) == VIP_NOT_DONE) {}") ==
          Words{"poll-and-notify"});
    for (const char* loop :
         {"do { r = VipRecvDone(vi, &d); } while (r == VIP_NOT_DONE);", "do r = VipRecvDone(vi, &d); while (r);",
          "for (;;) if (VipRecvDone(vi, &d) == VIP_SUCCESS) break;", "while (1) { if (a) { VipRecvDone(vi, &d); } }",
          "for (i = 0; VipRecvDone(vi, &d); ++i) {}"}) {
        INFO(loop);
        CHECK(warnings_of("VipRecvNotify(vi, 0, f); " + std::string(loop)) == Words{"poll-and-notify"});
    }
    for (const char* once :
         {"VipRecvDone(vi, &d);", "while (1) {} VipRecvDone(vi, &d);", "do {} while (a); x = VipRecvDone(vi, &d);",
          "for (;;) a(); VipRecvDone(vi, &d);", "while (1) {} void g() { VipRecvDone(vi, &d); }"}) {
        INFO(once);
        CHECK(warnings_of("VipRecvNotify(vi, 0, f); " + std::string(once)).empty());
    }
    CHECK(warnings_of("rpma_peer_new(c, &p); ibv_query_device(c, &a); ibv_wc_status_str(s);") == Words{"verbs-call"});
    CHECK(warnings_of("ibv_query_device(c, &a);").empty());
}

TEST_CASE("port_scan: libraries in build files") {
    std::vector<Warning> warnings;
    find_link_lines("LIBS = -lm -lgnivipl -lvipla\n# -lvipl\nX=\"-L/\xC3\xA4 -ldapl\"\n", warnings);
    REQUIRE(warnings.size() == 2);
    CHECK(warnings[0].position.line == 1);
    CHECK(warnings[0].position.column == 12);
    CHECK(warnings[1].position.line == 3);
    CHECK(warnings[1].position.column == 9);
}

TEST_CASE("port_scan: libraries in the languages of build files") {
    const auto found = [](std::string_view content) {
        std::vector<Warning> warnings;
        find_link_lines(content, warnings);
        Words words;
        for (const auto& warning : warnings) words.push_back(warning.text.substr(0, warning.text.find(':')));
        return words;
    };
    CHECK(found("pkg_check_modules(LIBRPMA REQUIRED librpma>=1.0)") == Words{"librpma"});
    CHECK(found("target_link_libraries(x\n  PRIVATE rpma # dat\n  dat2)\nadd_executable(dat dat.c)") ==
          Words{"rpma", "dat2"});
    CHECK(found("find_library(V NAMES vipl)\nset(vipl)") == Words{"vipl"});
    CHECK(found("dependency('librpma')\nv = cc.find_library('vipl')\ndat = 1") == Words{"librpma", "vipl"});
    CHECK(found("PKG_CHECK_MODULES([R],[librpma])\nAC_CHECK_LIB([vipl],[VipOpenNic])\nAC_SEARCH_LIBS(f, [m dat])") ==
          Words{"librpma", "vipl", "dat"});
    CHECK(found("L = /usr/lib/libvipl.a VIPL.LIB libdat2.so.2 libdatum.a mylibvipl.a") ==
          Words{"libvipl.a", "VIPL.LIB", "libdat2.so.2"});
    CHECK(found("L = $(shell pkg-config --libs \\\n librpma) vipl\nM = `pkg-config dat` dat\n") ==
          Words{"librpma", "dat"});
    CHECK(found("vipl rpma dat librpma\n").empty());
}

TEST_CASE("port_scan: uses are corrected with what a compiler knows") {
    const std::string source = "VipCloseNic(a); V(b); VIP_SUCCESS;";
    const Tokens tokens = tokenize(source);
    std::uint32_t disabled = 0;
    auto uses = find_uses(tokens, disabled);
    const auto macro = static_cast<std::uint32_t>(source.find("V(b)"));
    const Meanings meanings{.problem = {},
                            .own = {0},
                            .hidden = {{.name = "VipOpenNic", .offset = macro},
                                       {.name = "unknown", .offset = macro},
                                       {.name = "VipOpenNic", .offset = macro + 100}}};
    correct_uses(tokens, meanings, uses);
    REQUIRE(uses.size() == 2);
    CHECK(uses[0].name == "VipOpenNic");
    CHECK(uses[0].position.column == macro + 1);
    CHECK(uses[1].name == "VIP_SUCCESS");
}

TEST_CASE("port_scan: command lines are divided as shells do") {
    CHECK(split_command(R"(cc  -DA='b "c' "-D\"e\" f" g\ h '' )") == Words{"cc", "-DA=b \"c", "-D\"e\" f", "g h", ""});
    CHECK(split_command("").empty());
    CHECK(split_command("'open") == Words{"open"});
}

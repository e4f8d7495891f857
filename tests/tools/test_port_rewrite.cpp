// SPDX-License-Identifier: BSD-3-Clause
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tools/port/mapping.hpp"
#include "tools/port/rewrite.hpp"

using namespace viaduct::port;

TEST_CASE("port_rewrite: names and calls") {
    const auto text = [](std::string_view source) { return rewrite(source, "rpma").text; };
    CHECK(text("VIP_ULONG n = 1;\n") == "unsigned long n = 1;\n");
    CHECK(text("VIP_PVOID p;\n") == "void *p;\n");
    CHECK(text("void f() { VIP_RETURN r = g(&a); if (r != VIP_SUCCESS) h(); }") ==
          "void f() { int r = g(&a); if (r != 0) h(); }");
    CHECK(text("#include <vipl.h>\nVIP_UINT8 x;\n") == "#include <librpma.h>\nuint8_t x;\n");
    CHECK(text("int x;\n") == "int x;\n");
}

TEST_CASE("port_rewrite: calls stay until their objects have been moved") {
    const auto left = [](std::string_view source, std::string_view target) {
        const Rewriting result = rewrite(source, target);
        CHECK(result.replaced == 0);
        CHECK(result.text.ends_with("*/\n" + std::string(source)));
        return result.todos.at(0).reason;
    };
    const std::string when = "when its objects have been moved: ";
    CHECK(left("dat_pz_create(ia, &pz);\n", "rpma") == when + "rpma_peer_new(ia, &pz)");
    CHECK(left("VipDisconnect(v->vi);\n", "rpma") == when + "rpma_conn_disconnect(v->vi)");
    CHECK(left("VipDisconnect(get(sizeof x,\n 1));\n", "rpma") == when + "rpma_conn_disconnect(get(sizeof x, 1))");
    CHECK(left("VipDestroyVi(*vi[1]);\n", "rpma") == "not with these arguments");
    CHECK(left("dat_pz_free(e->pz);\n", "rpma") == when + "rpma_peer_delete(&e->pz)");
    CHECK(left("VipCreatePtag(nic, &tag);\n", "dat") == when + "dat_pz_create(nic, &tag)");
    CHECK(left("VipDestroyPtag(nic, tag);\n", "dat") == when + "dat_pz_free(tag)");
    CHECK(left("VipDestroyPtag(get(), tag);\n", "dat") == "not with these arguments");  // get() would not be called
    CHECK(left("dat_cr_reject(cr, 0, NULL);\n", "vipl") == when + "VipConnectReject(cr)");
    CHECK(left("dat_cr_reject(cr, size, data);\n", "vipl") == "not with these arguments");
    CHECK(left("rpma_mr_dereg(&end->region);\n", "dat") == when + "dat_lmr_free(end->region)");
    CHECK(left("rpma_mr_dereg(region);\n", "dat") == "not with these arguments");  // a pointer to a pointer
    CHECK(left("rpma_mr_dereg(&get()->region);\n", "dat") == "not with these arguments");
    CHECK(left("rpma_conn_delete(&conn, 1);\n", "dat") == "not with these arguments");
    CHECK(left("rpma_conn_disconnect(conn);\n", "vipl") == when + "VipDisconnect(conn)");
    CHECK(left("VipDisconnect(/* now */ vi);\n", "rpma") == when + "rpma_conn_disconnect(vi)");
    CHECK(left("VipDisconnect(vi\n", "rpma") == "not with these arguments");
}

TEST_CASE("port_rewrite: what is not safe is left with a comment") {
    const auto left = [](std::string_view source) {
        const Rewriting result = rewrite(source, "rpma");
        return result.replaced == 0 && result.todos.size() == 1 && result.text.starts_with("/* TODO(vi-port)");
    };
    CHECK(left("VIP_PVOID p, q;\n"));           // void *p, q
    CHECK(left("VIP_RETURN f(int);\n"));        // another source relies on it
    CHECK_FALSE(left("VIP_UINT32 f(int);\n"));  // the same type
    CHECK(rewrite("f() { VIP_RETURN r; g(&r); }", "rpma").replaced == 0);
    CHECK(rewrite("#define S(x) #x\nS(VIP_ULONG)", "rpma").replaced == 0);
    CHECK(rewrite("#define L(x) M(x)\n#define M(x) list_##x\nL(VIP_ULONG)", "rpma").replaced == 0);
    CHECK(rewrite("#define L(x) M(x)\n#define M(x) list_ x\nL(VIP_ULONG)", "rpma").replaced == 1);
}

TEST_CASE("port_rewrite: between VIPL and DAT") {
    const auto text = [](std::string_view source, std::string_view target) { return rewrite(source, target).text; };
    CHECK(text("#include <vipl.h>\nVIP_VI_HANDLE vi;\n", "dat") == "#include <dat2/udat.h>\nDAT_EP_HANDLE vi;\n");
    CHECK(text("#include <dat/udat.h>\n#include <vipl.h>\nDAT_PZ_HANDLE pz;\n", "vipl") ==
          "#include <netinet/in.h>\n#include <stddef.h>\n#include <stdio.h>\n#include <sys/socket.h>\n"
          "#include <vipl.h>\nVIP_PROTECTION_HANDLE pz;\n");
}

TEST_CASE("port_rewrite: to the core") {
    const std::string text = rewrite("#include <vipl.h>\nVipDisconnect(vi);\n", "core").text;
    CHECK(text.find("\n#include <vipl.h>\n/* TODO(vi-port): VipDisconnect: Endpoint::disconnect") != std::string::npos);
    CHECK(text.ends_with("*/\nVipDisconnect(vi);\n"));
}

TEST_CASE("port_rewrite: advice is given once") {
    const std::string text =
        rewrite("VIP_DESCRIPTOR d;\nx = VIP_DESCRIPTOR_ALIGNMENT;\nVIP_DESCRIPTOR e;\n", "rpma").text;
    CHECK(text.find("VIP_DESCRIPTOR_ALIGNMENT: as for VIP_DESCRIPTOR */") != std::string::npos);
    CHECK(text.find("VIP_DESCRIPTOR: as above */\nVIP_DESCRIPTOR e;") != std::string::npos);
}

TEST_CASE("port_rewrite: why a name is left") {
    const auto reason = [](std::string_view source, std::string_view path = "a.c") {
        return std::string(rewrite(source, "rpma", {}, path).todos.at(0).reason);
    };
    CHECK(reason("f() { VIP_RETURN r; g(&r); }") == "its address is taken");
    CHECK(rewrite("f() { VIP_RETURN r = g(); h(a && r); }", "rpma").text.find("int r") != std::string::npos);
    CHECK(reason("VIP_RETURN r;") == "not a local variable");
    CHECK(reason("f() { VIP_RETURN r; }", "a/b.cpp") == "the types of variables change only in C");
    CHECK(reason("VIP_PVOID p, q;") == "several names in one declaration");
    CHECK(reason("VipDestroyVi(get());") == "not with these arguments");
    CHECK(reason("f = VipDisconnect;") == "not called here");
    CHECK(reason("p->VipDisconnect(vi);") == "called through a member");
    CHECK(reason("switch (r) { case VIP_SUCCESS: }") == "used in a switch");
    CHECK(reason("return VIP_SUCCESS;") == "not an operand of == or !=");
    CHECK(reason("VIP_DESCRIPTOR d;").empty());
    CHECK(rewrite("VIP_PVOID a, b;\nVIP_PVOID c, d;\nconst VIP_PVOID e;\n", "rpma").text ==
          "/* TODO(vi-port): VIP_PVOID: void * (several names in one declaration) */\nVIP_PVOID a, b;\n"
          "/* TODO(vi-port): VIP_PVOID: as above */\nVIP_PVOID c, d;\n"
          "/* TODO(vi-port): VIP_PVOID: as above (it is qualified) */\nconst VIP_PVOID e;\n");
}

TEST_CASE("port_rewrite: comments do not break the source") {
    const auto text = [](std::string_view source) { return rewrite(source, "rpma").text; };
    CHECK(text("  VipNSShutdown(n);\r\n") ==
          "  /* TODO(vi-port): VipNSShutdown: Delete the call. */\r\n  VipNSShutdown(n);\r\n");
    CHECK(text("/* a\n */ VipNSShutdown(n);\n") ==
          "/* a\n */ /* TODO(vi-port): VipNSShutdown: Delete the call. */ VipNSShutdown(n);\n");
    CHECK(text("#define A \\\n VipNSShutdown(n)\n") ==
          "#define A \\\n /* TODO(vi-port): VipNSShutdown: Delete the call. */ VipNSShutdown(n)\n");
    CHECK(text("VipNSShutdown(n); VipNSShutdown(m);\nVipNSShutdown(k);\n") ==
          "/* TODO(vi-port): VipNSShutdown: Delete the call. */\nVipNSShutdown(n); VipNSShutdown(m);\n"
          "/* TODO(vi-port): VipNSShutdown: as above */\nVipNSShutdown(k);\n");
}

TEST_CASE("port_rewrite: the comments of an earlier run are replaced") {
    for (const std::string& source : std::vector<std::string>{
             "#include <vipl.h>\r\n  VipNSShutdown(n);\r\n", "/* a\n */ VipNSShutdown(n);\n",
             "#define A \\\n VipNSShutdown(n)\n",
             "VIP_DESCRIPTOR d, e[VIP_DESCRIPTOR_ALIGNMENT];\n\tVIP_DESCRIPTOR f;\n",
             "VipDestroyPtag(nic,\n   VIP_INVALID_PTAG);\n", std::string(60, ' ') + "VIP_DESCRIPTOR_ALIGNMENT;\n"}) {
        INFO(source);
        const std::string once = rewrite(source, "dat").text;
        CHECK(once != source);
        CHECK(rewrite(once, "dat").text == once);
        CHECK(rewrite(once, "dat").todos.size() == rewrite(source, "dat").todos.size());
    }
    const std::string to_rpma = rewrite(rewrite("VipNSShutdown(n);\n", "dat").text, "rpma").text;
    CHECK(to_rpma == rewrite("VipNSShutdown(n);\n", "rpma").text);
    CHECK(rewrite("/* TODO(vi-port): VipNSShutdown: Delete the call. */\nf();\n", "rpma").text == "f();\n");
    for (const char* source :
         {"char *s = \"/* TODO(vi-port): x */ y\";\n", "// /* TODO(vi-port): x */ y\n", "/*\n/* TODO(vi-port): x */\n",
          "/* TODO(vi-port): x", "int a; /* TODO(vi-port): x */\n"}) {
        INFO(source);
        CHECK(rewrite(source, "rpma").text == source);
    }
}

TEST_CASE("port_rewrite: names that the program declares or tests are left") {
    for (const char* source :
         {"#ifndef VIP_PVOID\n#endif\n", "typedef void *VIP_PVOID;\n", "typedef int x, VIP_ULONG;\n",
          "typedef char VIP_ULONG[4];\n", "typedef struct { int a; } VIP_ULONG;\n", "#undef VIP_ULONG\n",
          "enum { VIP_TRUE };\n", "enum e { a = f(1, 2), VIP_TRUE = 1 };\n", "#ifdef VIP_TRUE\n#endif\n",
          "#if defined(VIP_TRUE) || a\n#endif\n", "#if !defined VIP_TRUE\n#endif\n"}) {
        INFO(source);
        const Rewriting result = rewrite(source, "rpma");
        CHECK(result.replaced == 0);
        CHECK(result.text.ends_with(source));
    }
    CHECK(rewrite("typedef VIP_ULONG x;\nenum { a = VIP_TRUE };\n", "rpma").replaced == 2);
}

TEST_CASE("port_rewrite: only types of local variables are changed to others") {
    const auto replaced = [](const std::string& source) { return rewrite(source, "rpma").replaced != 0; };
    CHECK(replaced("int f(int a)\n{ VIP_RETURN r; }"));
    CHECK(replaced("f(a) int a; { if (a) { VIP_RETURN r; } }"));
    CHECK(replaced("#ifdef A\nint f(void) {\n#else\nint f(int a) {\n#endif\nint b; VIP_RETURN r; }"));
    CHECK_FALSE(replaced("#ifdef A\nint f(void) {\n#else\nint f(int a) {\n#endif\n}\nint x; VIP_RETURN r;"));
    CHECK(replaced("#define A do { const VIP_RETURN r = f(); } while (0)\n"));
    CHECK_FALSE(replaced("#define A struct s { int a; VIP_RETURN r; }\n"));
    CHECK_FALSE(replaced("#define A do {\nint x; VIP_RETURN r;\n"));
    CHECK_FALSE(replaced("struct s { int a; VIP_RETURN r; };"));
    CHECK_FALSE(replaced("struct __attribute__((packed)) { int a; VIP_RETURN r; } s;"));
    CHECK_FALSE(replaced("void f(void) { struct { int a; VIP_RETURN r; } s; }"));
    CHECK_FALSE(replaced("extern \"C\" { VIP_RETURN r; }"));
    for (const char* address : {"&r", "&(r)", "&((r))", "&p->r", "&a.b[1].r", "&(*p).r"}) {
        INFO(address);
        CHECK(replaced("void f(void) { VIP_RETURN r; }"));
        CHECK_FALSE(replaced("void f(void) { VIP_RETURN r; g(" + std::string(address) + "); }"));
    }
    CHECK_FALSE(replaced("void f(void) { VIP_RETURN r[4]; g(r); }"));
    CHECK_FALSE(replaced("#define S(x) T(x)\n#define T(x) g(&(x))\nvoid f(void) { VIP_RETURN r; S(r); }"));
    CHECK(replaced("#define S(x) g(x)\nvoid f(void) { VIP_RETURN r; S(r); }"));
    CHECK(rewrite("f() { VIP_RETURN r = g(); return r; }", "rpma", {}, "a/b.cpp").replaced == 0);
    CHECK(rewrite("f() { VIP_RETURN r = g(); return r; }", "rpma", {}, "a.b/c.h").replaced == 1);
}

TEST_CASE("port_rewrite: a pointer is no replacement for a type everywhere") {
    const auto replaced = [](std::string_view source) { return rewrite(source, "rpma").replaced; };
    CHECK(replaced("const VIP_PVOID p;") == 0);
    CHECK(replaced("volatile static VIP_PVOID p;") == 0);
    CHECK(replaced("static VIP_PVOID const p;") == 1);
    CHECK(replaced("for (VIP_PVOID a = x, b = x;;) {}") == 0);
    CHECK(replaced("for (VIP_PVOID a = x; a;) {}") == 1);
    CHECK(replaced("x = VIP_ULONG(y);") == 0);
    CHECK(replaced("x = VIP_PVOID(y);") == 0);
    CHECK(replaced("x = VIP_ULONG{3};") == 0);
    CHECK(replaced("x = (VIP_ULONG)(y);") == 1);
    CHECK(rewrite("typedef VIP_ULONG (*hash)(int);", "rpma").todos.size() == 1);
}

TEST_CASE("port_rewrite: the pointer that a macro stands for") {
    const auto replaced = [](std::string_view uses) {
        return rewrite("#define P VIP_PVOID\n" + std::string(uses), "rpma").replaced;
    };
    CHECK(rewrite("#define P VIP_PVOID\nP p;\n", "rpma").text == "#define P void *\nP p;\n");
    CHECK(replaced("int a, b; P p; P f(P q, P r);\n") == 1);
    CHECK(replaced("int a; P p, q;\n") == 0);
    CHECK(replaced("P p; const P q = 0;\n") == 0);
    CHECK(replaced("P p; x = P(y);\n") == 0);
    CHECK(replaced("P p;\n#define Q P\nQ q, r;\n") == 0);
    CHECK(replaced("") == 0);  // for other sources
}

TEST_CASE("port_rewrite: where the header is included") {
    const auto text = [](std::string_view source) { return rewrite(source, "dat").text; };
    const std::string use = "VIP_VI_HANDLE a;\n";
    const std::string result = "DAT_EP_HANDLE a;\n";
    const std::string line = "#include <dat2/udat.h>\n";
    CHECK(text("#include <a.h>\n#include \"b.h\"\nint x;\n" + use) ==
          "#include <a.h>\n#include \"b.h\"\n" + line + "int x;\n" + result);
    CHECK(text("#include \"b.h\"\n#if 0\n#include <a.h>\n#endif\n" + use) ==
          "#include \"b.h\"\n" + line + "#if 0\n#include <a.h>\n#endif\n" + result);
    CHECK(text("#ifdef A\n#include <a.h>\n#endif\n" + use + "#include \"end.inc\"\n") ==
          "#ifdef A\n#include <a.h>\n#endif\n" + line + result + "#include \"end.inc\"\n");
    CHECK(text("#ifndef A\n#define A\n#include <a.h>\n" + use + "#endif\n") ==
          "#ifndef A\n#define A\n#include <a.h>\n" + line + result + "#endif\n");
    CHECK(text("#include <a.h> /* b\n c */\n" + use) == line + "#include <a.h> /* b\n c */\n" + result);
    const std::string mark = "\xEF\xBB\xBF";
    CHECK(text(mark + use) == mark + line + result);
    CHECK(text(mark + "VipNSShutdown(n);\n") ==
          mark + "/* TODO(vi-port): VipNSShutdown: Delete the call. */\nVipNSShutdown(n);\n");
    // Also where only the calls that are left to move need it.
    CHECK(rewrite("#include \"b.h\"\nVipDisconnect(a);\n", "rpma")
              .text.starts_with("#include \"b.h\"\n#include <librpma.h>\n"));
}

TEST_CASE("port_rewrite: headers of the APIs") {
    const auto text = [](std::string_view source, std::string_view target) { return rewrite(source, target).text; };
    CHECK(text("#include <vipl.h>\n", "rpma") == "#include <librpma.h>\n");
    CHECK(rewrite("#include <vipl.h>\n", "rpma").replaced == 1);
    CHECK(text("#include <vipl.h>\n#include <librpma.h>\n", "rpma") == "#include <librpma.h>\n");
    CHECK(text("#include <stdio.h>\n#include <dat2/udat.h>\n#include <dat2/dat_ib_extensions.h>\n", "rpma") ==
          "#include <stdio.h>\n#include <netinet/in.h>\n#include <sys/socket.h>\n#include <librpma.h>\n");
    CHECK(text("#if 0\n#include <vipl.h>\n#endif\n", "rpma") == "#if 0\n#include <vipl.h>\n#endif\n");
    const Rewriting to_core = rewrite("#include <vipl.h>\n", "core");
    CHECK(to_core.todos.size() == 1);
    CHECK(to_core.text.ends_with("any more */\n#include <vipl.h>\n"));
}

TEST_CASE("port_rewrite: each branch of a conditional gets the header") {
    const std::string before =
        "#ifndef A\n#include <vipl.h>\n#ifdef B\n#include <vipl.h>\n#endif\n#else\n#include <vipl.h>\n#endif\n";
    const std::string once = rewrite(before, "dat").text;
    CHECK(once == "#ifndef A\n#include <dat2/udat.h>\n#ifdef B\n#endif\n#else\n#include <dat2/udat.h>\n#endif\n");
    CHECK(rewrite(once, "dat").text == once);
    CHECK(rewrite("#ifdef A\n#include <librpma.h>\n#else\n#include <vipl.h>\n#endif\n", "rpma").text ==
          "#ifdef A\n#include <librpma.h>\n#else\n#include <librpma.h>\n#endif\n");
    const std::string left =
        rewrite("#if A\n#include <vipl.h>\n#elif B\n#include <vipl.h>\n#endif\nVipDisconnect(a);\n", "rpma").text;
    CHECK(left.find("#elif B\n#include <librpma.h>\n") != std::string::npos);
    CHECK(rewrite(left, "rpma").text == left);
    CHECK(rewrite("#ifdef A\n#include <dat/udat.h>\n#else\n#include <dat/udat.h>\n#endif\n", "vipl")
              .text.find("#else\n#include <netinet/in.h>\n") != std::string::npos);
}

TEST_CASE("port_rewrite: sources that include a header may need what it includes") {
    const Rewriting result = rewrite("#include <vipl.h>\nextern VIP_UINT8 x;\n", "rpma", {}, "a.hpp");
    CHECK(result.text.starts_with("#include <librpma.h>\n/* TODO(vi-port): vipl.h: remove"));
    CHECK(result.text.ends_with("\n#include <vipl.h>\nextern uint8_t x;\n"));
    CHECK(rewrite(result.text, "rpma", {}, "a.hpp").text == result.text);
}

TEST_CASE("port_rewrite: a header that may be the program's stays") {
    const auto stays = [](std::string_view header, std::string_view target) {
        const std::string include = "#include " + std::string(header) + "\n";
        const std::string text = rewrite(include + "VIP_VI_HANDLE vi;\n", target).text;
        const bool added = text.find("#include <dat2/udat.h>\n") != std::string::npos;
        return text.find(include) != std::string::npos && added == (target == "dat");
    };
    CHECK(stays("\"dat.h\"", "rpma"));
    CHECK(stays("\"dat.h\"", "dat"));
    CHECK_FALSE(stays("<dat.h>", "rpma"));
    CHECK_FALSE(stays("\"vipl.h\"", "dat"));
}

TEST_CASE("port_rewrite: a header stays if a macro makes names of its API") {
    const auto stays = [](const std::string& source) {
        const Rewriting result = rewrite("#include <vipl.h>\n" + source, "rpma");
        return result.text.find("#include <vipl.h>") != std::string::npos && result.todos.size() == 1;
    };
    CHECK(stays("#define V(n) VIP_##n\nint f(int r) { return r == V(NOT_DONE); }\n"));
    CHECK(stays("#define V(n) Vip ## n\n"));
    CHECK_FALSE(stays("#define V(n) my_##n\n"));
    CHECK_FALSE(stays("#define V(n) #n\n"));
}

TEST_CASE("port_rewrite: comments in long lines stay short") {
    const std::string line(100000, ' ');
    CHECK(rewrite(line + "VIP_DESCRIPTOR d;\n", "rpma").text.size() < line.size() + 2000);
}

TEST_CASE("port_rewrite: what is beside an #include stays") {
    const auto text = [](std::string_view source) { return rewrite(source, "rpma").text; };
    CHECK(text("#include <vipl.h> /* first\n second */\nVIP_UINT8 x;\n") ==
          "#include <librpma.h> /* first\n second */\nuint8_t x;\n");
    CHECK(text("/* first\n second */ #include <vipl.h>\nVIP_UINT8 x;\n") ==
          "/* first\n second */ #include <librpma.h>\nuint8_t x;\n");
    CHECK(text("#include <vipl.h>\n#include <vipl.h> // again\n#include <vipl.h>\nVIP_UINT8 x;\n") ==
          "#include <librpma.h>\n // again\nuint8_t x;\n");
    CHECK(text("#include \\\n <vipl.h>\nVIP_UINT8 x;\n") == "#include <librpma.h>\nuint8_t x;\n");
}

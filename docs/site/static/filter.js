// SPDX-License-Identifier: BSD-3-Clause
// Above the first table of a page with many rows: a field that shows only the rows that contain all of its words.
document.addEventListener("DOMContentLoaded", () => {
    const rows = [...document.querySelectorAll("article table tbody tr")];
    if (rows.length < 150) return;
    const texts = rows.map(row => row.textContent.toLowerCase());
    const first = document.querySelector("article h1");
    const box = document.createElement("div");
    box.className = "filter";
    box.innerHTML = '<input type="search" placeholder="Show only rows with …" aria-label="Show only rows with">' +
                    '<span role="status"></span>';
    first.after(box);
    const [input, status] = box.children;
    const apply = () => {
        const words = input.value.toLowerCase().split(/\s+/).filter(word => word);
        let shown = 0;
        rows.forEach((row, i) => {
            row.hidden = !words.every(word => texts[i].includes(word));
            shown += !row.hidden;
        });
        for (const part of document.querySelectorAll("article table, article section"))
            part.hidden = words.length > 0 && !part.querySelector("tbody tr:not([hidden])");
        document.body.classList.toggle("filtered", words.length > 0);
        status.textContent = words.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    };
    input.addEventListener("input", apply);
    input.value = new URLSearchParams(location.search).get("rows") || "";
    apply();
});

/* http/page.h - the dashboard's files (http/page/), in the program: made by http/page/embed.py. */
#ifndef HTTP_PAGE_H
#define HTTP_PAGE_H

#include <stddef.h>

extern const char http_page_index_html[], http_page_page_css[], http_page_page_js[];
extern const size_t http_page_index_html_n, http_page_page_css_n, http_page_page_js_n;

#endif

/* SPDX-License-Identifier: BSD-3-Clause
 * A provider of nothing, as a library that a registry loads, for registry.c. Its adapters open, tell what their line of
 * dat.conf says, and close; zones can be made and freed; all other functions are missing.
 *
 * The line's ia_params say what it does otherwise: "silent" registers nothing, "refuse" fails to open.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <dat2/udat.h>
/* udat.h is to come first */
#include <dat2/dat_registry.h>

#define REFUSAL (DAT_CLASS_ERROR | (DAT_RETURN)DAT_INSUFFICIENT_RESOURCES | (DAT_RETURN)DAT_RESOURCE_DEVICE)

/* One for each line that the registry loads; `table` comes first, so that the one is found by the other. */
typedef struct Line {
    DAT_PROVIDER table;
    DAT_PROVIDER_INFO info;
    const DAT_PROVIDER_INFO *key; /* its address, which the registry gives again at the end */
    char params[DAT_NAME_MAX_LENGTH];
    struct Line *next;
} Line;

typedef struct {
    const DAT_PROVIDER *provider;
    DAT_CONTEXT context;
} Object;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* guards what follows */
static Line *lines;

static DAT_RETURN make(const DAT_PROVIDER *provider, DAT_HANDLE *handle) {
    Object *object = calloc(1, sizeof *object);
    if (object == NULL) return REFUSAL;
    object->provider = provider;
    *handle = object;
    return DAT_SUCCESS;
}

/* The newest line of that name. */
static DAT_RETURN ia_open(const DAT_NAME_PTR name, DAT_COUNT qlen, DAT_EVD_HANDLE *async_evd, DAT_IA_HANDLE *ia) {
    (void)qlen;
    (void)async_evd;
    pthread_mutex_lock(&mutex);
    Line *line = lines;
    while (line != NULL && strcmp(line->info.ia_name, name) != 0) line = line->next;
    pthread_mutex_unlock(&mutex);
    return line == NULL || strcmp(line->params, "refuse") == 0 ? REFUSAL : make(&line->table, ia);
}

static DAT_RETURN ia_query(DAT_IA_HANDLE ia, DAT_EVD_HANDLE *async_evd, DAT_IA_ATTR_MASK ia_mask, DAT_IA_ATTR *ia_attr,
                           DAT_PROVIDER_ATTR_MASK provider_mask, DAT_PROVIDER_ATTR *provider_attr) {
    const Line *line = (const Line *)DAT_HANDLE_TO_PROVIDER(ia);
    (void)async_evd;
    (void)ia_mask;
    if (ia_attr != NULL) memset(ia_attr, 0, sizeof *ia_attr);
    if (provider_attr == NULL || provider_mask == 0) return DAT_SUCCESS;
    memset((void *)provider_attr, 0, sizeof *provider_attr);
    memcpy(provider_attr->provider_name, line->params, sizeof line->params);
    provider_attr->dapl_version_major = line->info.dapl_version_major;
    provider_attr->dapl_version_minor = line->info.dapl_version_minor;
    provider_attr->is_thread_safe = line->info.is_thread_safe;
    return DAT_SUCCESS;
}

static DAT_RETURN ia_close(DAT_IA_HANDLE ia, DAT_CLOSE_FLAGS flags) {
    (void)flags;
    free(ia);
    return DAT_SUCCESS;
}

static DAT_RETURN set_consumer_context(DAT_HANDLE handle, DAT_CONTEXT context) {
    ((Object *)handle)->context = context;
    return DAT_SUCCESS;
}

static DAT_RETURN get_consumer_context(DAT_HANDLE handle, DAT_CONTEXT *context) {
    *context = ((Object *)handle)->context;
    return DAT_SUCCESS;
}

static DAT_RETURN pz_create(DAT_IA_HANDLE ia, DAT_PZ_HANDLE *pz) { return make(DAT_HANDLE_TO_PROVIDER(ia), pz); }

static DAT_RETURN pz_free(DAT_PZ_HANDLE pz) {
    free(pz);
    return DAT_SUCCESS;
}

/* Whether two adapters are related: this one says so of every other one. */
static DAT_RETURN ia_ha_related(DAT_IA_HANDLE ia, const DAT_NAME_PTR name, DAT_BOOLEAN *answer) {
    (void)ia;
    *answer = strcmp(name, "stranger") == 0 ? DAT_FALSE : DAT_TRUE;
    return DAT_SUCCESS;
}

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data);
void dat_provider_fini(const DAT_PROVIDER_INFO *info);

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *instance_data) {
    Line *line = calloc(1, sizeof *line);
    if (line == NULL) return;
    line->info = *info;
    line->key = info;
    strncpy(line->params, instance_data, sizeof line->params - 1);
    line->table = (DAT_PROVIDER){.device_name = line->info.ia_name,
                                 .ia_open_func = ia_open,
                                 .ia_query_func = ia_query,
                                 .ia_close_func = ia_close,
                                 .set_consumer_context_func = set_consumer_context,
                                 .get_consumer_context_func = get_consumer_context,
                                 .pz_create_func = pz_create,
                                 .pz_free_func = pz_free,
                                 .ia_ha_related_func = ia_ha_related};
    pthread_mutex_lock(&mutex);
    line->next = lines;
    lines = line;
    pthread_mutex_unlock(&mutex);
    if (strcmp(line->params, "silent") != 0) dat_registry_add_provider(&line->table, &line->info);
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info) {
    pthread_mutex_lock(&mutex);
    Line **at = &lines;
    while (*at != NULL && (*at)->key != info) at = &(*at)->next;
    Line *line = *at;
    if (line != NULL) *at = line->next;
    pthread_mutex_unlock(&mutex);
    if (line == NULL) return;
    if (strcmp(line->params, "silent") != 0) dat_registry_remove_provider(&line->table, &line->info);
    free(line);
}

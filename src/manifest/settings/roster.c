/* SPDX-License-Identifier: Apache-2.0 */
#include "manifest/settings/roster.h"
#include "manifest/text/yaml_tree.h"

#include "artifact/names/name.h"
#include "artifact/names/version.h"
#include "base/alloc.h"
#include "fs/root.h"

#include <string.h>
#include <sys/stat.h>

/* --- the file's shape --- */

struct written_member {
    const char *name;
    const char *capsule;
    const char *version;
    struct opt_bool entry;
};

struct written_roster {
    struct opt_u64 roster_version;
    LIST_OF (struct written_member) members;
    const struct yaml_node *reachability;
};

static const struct schema_key member_keys[] = {
    { "name", KEY_TEXT, offsetof (struct written_member, name), .doc = "Name in the formation." },
    { "capsule", KEY_TEXT, offsetof (struct written_member, capsule), .doc = "Full name." },
    { "version", KEY_TEXT, offsetof (struct written_member, version), .doc = "Exact version." },
    { "entry", KEY_BOOL, offsetof (struct written_member, entry), .doc = "Takes the task." },
    { .name = NULL },
};
static const struct schema member_schema = { member_keys, sizeof (struct written_member) };

static const struct schema_key roster_keys[] = {
    { "roster_version", KEY_U64, offsetof (struct written_roster, roster_version),
      .rule = RULE_RANGE, .min = 1, .max = 1, .doc = "1." },
    { "members", KEY_BLOCKS, offsetof (struct written_roster, members), .block = &member_schema,
      .flags = KEY_NULL_IS_ABSENT, .doc = "Who belongs to it." },
    { "reachability", KEY_NODE, offsetof (struct written_roster, reachability),
      .doc = "Who may call whom." },
    { .name = NULL },
};
static const struct schema roster_schema = { roster_keys, sizeof (struct written_roster) };

struct parsing {
    struct schema_reader r;
    struct roster *roster;
    struct written_roster written;
    struct mur_error **err;
};

static bool
member_name_is_valid (const char *name)
{
    size_t len = name ? strlen (name) : 0;
    return len && len <= 32 && name[0] >= 'a' && name[0] <= 'z' &&
           strspn (name, "abcdefghijklmnopqrstuvwxyz0123456789-") == len;
}

/* Fails about a path; names the member it lies in, once its name is known to be usable. */
static bool refuse (struct parsing *p, enum diag_code code, const char *path, const char *fmt, ...)
    _printf_ (4, 5);

static bool
refuse (struct parsing *p, enum diag_code code, const char *path, const char *fmt, ...)
{
    va_list ap;
    va_start (ap, fmt);
    _cleanup_free_ char *text = x_vasprintf (fmt, ap);
    va_end (ap);
    size_t index;
    const char *name = NULL;
    if (sscanf (path, "members[%zu]", &index) == 1 && index < p->written.members.len)
        name = p->written.members.items[index].name;
    bool is_usable = member_name_is_valid (name);
    return schema_fail (&p->r, p->err, code, path, "%s%s%s%s", text, is_usable ? " (member '" : "",
                        is_usable ? name : "", is_usable ? "')" : "");
}

static char *
path_of (struct parsing *p, const char *list, size_t index, const char *key)
{
    return arena_printf (p->r.arena, "%s[%zu]%s%s", list, index, key ? "." : "", key ? key : "");
}

static bool
refuse_unknown (struct parsing *p, const char *path, const char *key, const char *suggestion)
{
    const char *full = arena_printf (p->r.arena, "%s%s%s", path, *path ? "." : "", key);
    refuse (p, E_ROS_001, full, "unknown key '%s'", key);
    return suggestion ? mur_hint (p->err, "did you mean '%s'?", suggestion) : false;
}

static bool
judge_member (struct parsing *p, size_t i)
{
    const struct written_member *w = &p->written.members.items[i];
    if (! member_name_is_valid (w->name))
        return refuse (
            p, E_ROS_001, path_of (p, "members", i, "name"),
            "a name of a-z, 0-9 and '-', beginning with a letter and at most 32 long is required");
    if (! w->capsule)
        return refuse (p, E_ROS_001, path_of (p, "members", i, "capsule"), "a capsule is required");
    struct mur_error *why = NULL;
    if (! name_check_full (w->capsule, E_ROS_001, NULL, &why)) {
        refuse (p, E_ROS_001, path_of (p, "members", i, "capsule"), "%s", why->message);
        if (why->hint)
            mur_hint (p->err, "%s", why->hint);
        mur_error_free (why);
        return false;
    }
    if (! w->version || w->version[strspn (w->version, " \t")] == '\0')
        return refuse (p, E_ROS_001, path_of (p, "members", i, "version"),
                       "an exact version is required");
    if (version_is_reserved (w->version))
        return refuse (p, E_ROS_001, path_of (p, "members", i, "version"),
                       "'%s' names no exact version", w->version);
    p->roster->members[i] =
        (struct roster_member){ w->name, w->capsule, w->version, w->entry.value };
    return true;
}

static bool
judge_members (struct parsing *p)
{
    size_t len = p->written.members.len;
    if (! p->written.roster_version.is_set)
        return refuse (p, E_ROS_001, "roster_version", "this key is required: roster_version: 1");
    if (! len)
        return refuse (p, E_ROS_001, "members", "at least one member is required");
    if (len > ROSTER_MEMBERS_MAX)
        return refuse (p, E_ROS_001, "members", "%zu members; a formation has at most %d", len,
                       ROSTER_MEMBERS_MAX);
    p->roster->members = arena_new_array (p->r.arena, struct roster_member, len);
    p->roster->len = len;
    for (size_t i = 0; i < len; i++)
        if (! judge_member (p, i))
            return false;
    return true;
}

/* --- reachability --- */

struct rule {
    const char *from;
    const struct yaml_node *to;
};

static bool
take_rule (struct parsing *p, size_t i, const struct yaml_node *n, struct rule *out)
{
    const char *path = path_of (p, "reachability", i, NULL);
    if (n->kind != YAML_MAP)
        return refuse (p, E_ROS_001, path, "expected a map of from and to, found a %s",
                       yaml_kind_name (n));
    for (uint32_t k = 0; k < n->len; k++) {
        const char *key = yaml_is_scalar (n->pairs[k].key) ? n->pairs[k].key->text : "?";
        if (strcmp (key, "from") == 0)
            out->from = yaml_text (n->pairs[k].value);
        else if (strcmp (key, "to") == 0)
            out->to = n->pairs[k].value;
        else
            return refuse_unknown (p, path, key, NULL);
    }
    if (! out->from)
        return refuse (p, E_ROS_001, path_of (p, "reachability", i, "from"),
                       "a member is required");
    if (! out->to || out->to->kind != YAML_LIST || ! out->to->len)
        return refuse (p, E_ROS_001, path_of (p, "reachability", i, "to"),
                       "a list of at least one member is required");
    for (uint32_t k = 0; k < out->to->len; k++) {
        const char *to = yaml_text (out->to->items[k]);
        const char *at = arena_printf (p->r.arena, "%s.to[%u]", path, k);
        if (! to)
            return refuse (p, E_ROS_001, at, "expected a member's name");
        if (strcmp (to, out->from) == 0)
            return refuse (p, E_ROS_001, at, "'%s' cannot call itself", to);
    }
    return true;
}

/* Reads the rules' shape. *len is their number; "all" and closed have none. */
static bool
take_rules (struct parsing *p, struct rule **rules, size_t *len)
{
    const struct yaml_node *n = p->written.reachability;
    *len = 0;
    if (! n || n->kind == YAML_NULL)
        return true;
    if (str_eq (yaml_text (n), "all")) {
        p->roster->reaches_all = true;
        return true;
    }
    if (n->kind != YAML_LIST)
        return refuse (p, E_ROS_001, "reachability",
                       "it must be all, or a list of rules with from and to");
    *rules = arena_new_array (p->r.arena, struct rule, n->len);
    for (uint32_t i = 0; i < n->len; i++)
        if (! take_rule (p, i, n->items[i], &(*rules)[i]))
            return false;
    *len = n->len;
    return true;
}

/* --- checks that need no store: unique names, one entry, rules name members, none calls the entry
 * --- */

static bool
find_member (const struct roster *r, const char *name, size_t *index)
{
    for (size_t i = 0; i < r->len; i++)
        if (strcmp (r->members[i].name, name) == 0) {
            *index = i;
            return true;
        }
    return false;
}

static bool
check_members (struct parsing *p)
{
    struct roster *r = p->roster;
    for (size_t i = 1; i < r->len; i++)
        for (size_t j = 0; j < i; j++)
            if (strcmp (r->members[i].name, r->members[j].name) == 0)
                return refuse (p, E_ROS_003, path_of (p, "members", i, "name"), "'%s' stands twice",
                               r->members[i].name);
    _cleanup_strv_ struct strv entries = { 0 };
    for (size_t i = 0; i < r->len; i++)
        if (r->members[i].is_entry) {
            r->entry = i;
            strv_push (&entries, r->members[i].name);
        }
    if (entries.len == 1)
        return true;
    _cleanup_free_ char *names = strv_join (&entries, ", ");
    refuse (p, E_ROS_002, "members", "exactly one member takes the task, not %zu%s%s", entries.len,
            entries.len ? ": " : "", names);
    return mur_hint (p->err, "set entry: true on one member");
}

static bool
take_edge (struct parsing *p, size_t i, const char *from, const char *to, uint32_t k,
           struct roster_edge *out)
{
    const char *at = arena_printf (p->r.arena, "reachability[%zu].to[%u]", i, k);
    if (! find_member (p->roster, from, &out->from))
        return refuse (p, E_ROS_004, path_of (p, "reachability", i, "from"), "'%s' is no member",
                       from);
    return find_member (p->roster, to, &out->to) ||
           refuse (p, E_ROS_004, at, "'%s' is no member", to);
}

static int
compare_edges (const void *x, const void *y)
{
    const struct roster_edge *a = x, *b = y;
    int order = (a->from > b->from) - (a->from < b->from);
    return order ? order : (a->to > b->to) - (a->to < b->to);
}

static void
settle_edges (struct roster *r, size_t len)
{
    if (len)
        qsort (r->edges, len, sizeof *r->edges, compare_edges);
    for (size_t i = 0; i < len; i++)
        if (! r->edges_len || compare_edges (&r->edges[r->edges_len - 1], &r->edges[i]) != 0)
            r->edges[r->edges_len++] = r->edges[i];
}

static bool
check_rules (struct parsing *p, const struct rule *rules, size_t len)
{
    struct roster *r = p->roster;
    size_t total = 0, at = 0;
    for (size_t i = 0; i < len; i++)
        total += rules[i].to->len;
    r->edges = arena_new_array (p->r.arena, struct roster_edge, total);
    for (size_t i = 0; i < len; i++)
        for (uint32_t k = 0; k < rules[i].to->len; k++, at++)
            if (! take_edge (p, i, rules[i].from, rules[i].to->items[k]->text, k, &r->edges[at]))
                return false;
    for (size_t i = 0; i < len; i++)
        for (uint32_t k = 0; k < rules[i].to->len; k++) {
            const char *entry = r->members[r->entry].name;
            if (strcmp (rules[i].to->items[k]->text, entry) != 0)
                continue;
            refuse (p, E_ROS_008, arena_printf (p->r.arena, "reachability[%zu].to[%u]", i, k),
                    "nobody may call the entry member '%s'", entry);
            return mur_hint (p->err, "if it is to call instead: from: %s, to: [%s]", entry,
                             rules[i].from);
        }
    settle_edges (r, total);
    return true;
}

/* --- reading --- */

static bool
parse_all (struct parsing *p)
{
    struct rule *rules = NULL;
    size_t len;
    schema_read (&p->r, &roster_schema, p->r.root, "", &p->written);
    if (! schema_take_fault (&p->r, p->err))
        return false;
    if (p->r.unknown.len) {
        const struct unknown_key *u = &p->r.unknown.items[0];
        return refuse_unknown (p, u->path, u->key, u->suggestion);
    }
    return schema_check (&p->r, &roster_schema, &p->written, "", p->err) && judge_members (p) &&
           take_rules (p, &rules, &len) && check_members (p) && check_rules (p, rules, len);
}

struct roster *
roster_parse (const char *text, size_t len, const char *file, struct mur_error **err)
{
    struct arena *arena = arena_new ();
    _cleanup_ (roster_freep) struct roster *r = arena_new0 (arena, struct roster);
    r->arena = arena;
    r->file = arena_strdup (arena, file);
    struct yaml_node *root = yaml_parse (arena, text, len, file, E_ROS_001, err);
    if (! root)
        return NULL;
    struct parsing p = { .roster = r, .err = err };
    p.r =
        (struct schema_reader){ .arena = arena, .file = r->file, .root = root, .code = E_ROS_001 };
    bool ok = parse_all (&p);
    schema_reader_clear (&p.r);
    return ok ? steal_ptr (&r) : NULL;
}

struct roster *
roster_read (const char *path, struct mur_error **err)
{
    struct stat st;
    bool is_dir = stat (path, &st) == 0 && S_ISDIR (st.st_mode);
    const char *slash = strrchr (path, '/');
    _cleanup_free_ char *file = is_dir ? x_asprintf ("%s/roster.yaml", path) : x_strdup (path);
    if (! is_dir && strcmp (slash ? slash + 1 : path, "roster.yaml") != 0) {
        mur_fail (err, E_ROS_001,
                  "%s: a roster is a file named roster.yaml, or a directory holding one", path);
        return NULL;
    }
    _cleanup_buf_ struct buf text = { 0 };
    struct mur_error *caught = NULL;
    if (! yaml_read_text (file, E_ROS_001, &text, &caught)) {
        caught->code = E_ROS_001;
        mur_propagate (err, caught);
        return NULL;
    }
    return roster_parse (text.data ? text.data : "", text.len, file, err);
}

void
roster_free (struct roster *r)
{
    if (r)
        arena_free (r->arena); /* r itself lives there */
}

/* --- admission over the members' manifests --- */

bool
roster_serves_peers (const struct capsule_manifest *m)
{
    return m->exports && m->exports->peer_tasks && m->exports->peer_tasks->accept.value;
}

/* "all": every ordered pair of members that both serve peers, never into the entry. */
static void
expand_all (struct roster *r, const struct capsule_manifest *const *manifests)
{
    r->edges_len = 0;
    r->edges = arena_new_array (r->arena, struct roster_edge, r->len * r->len);
    for (size_t from = 0; from < r->len; from++)
        for (size_t to = 0; to < r->len; to++)
            if (from != to && to != r->entry && roster_serves_peers (manifests[from]) &&
                roster_serves_peers (manifests[to]))
                r->edges[r->edges_len++] = (struct roster_edge){ from, to };
}

bool
roster_admit (struct roster *r, const struct capsule_manifest *const *manifests,
              struct mur_error **err)
{
    if (r->reaches_all)
        expand_all (r, manifests);
    for (size_t i = 0; i < r->edges_len; i++) {
        const struct roster_member *callee = &r->members[r->edges[i].to];
        if (roster_serves_peers (manifests[r->edges[i].to]))
            continue;
        mur_fail (err, E_ROS_005,
                  "%s: member '%s' (%s@%s) is called by '%s' but does not serve peers", r->file,
                  callee->name, callee->capsule, callee->version,
                  r->members[r->edges[i].from].name);
        return mur_hint (err, "its manifest must declare exports.peer_tasks.accept: true");
    }
    for (size_t i = 0; r->edges_len && i < r->len; i++) {
        if (manifests[i]->network && manifests[i]->network->authentication)
            continue;
        mur_fail (err, E_ROS_006,
                  "%s: member '%s' (%s@%s) has a public door, but members call each other", r->file,
                  r->members[i].name, r->members[i].capsule, r->members[i].version);
        return mur_hint (err, "its manifest must declare network.authentication: {scheme: bearer}");
    }
    return true;
}

char *
roster_overfull (const struct roster *r, size_t member, const struct capsule_manifest *m)
{
    uint64_t callers = 0, held = lifecycle_tasks_held (m->lifecycle);
    for (size_t i = 0; i < r->edges_len; i++)
        callers += r->edges[i].to == member;
    if (callers <= held)
        return NULL;
    return x_asprintf ("member '%s' may be called by %llu members but holds %llu task%s at once",
                       r->members[member].name, (unsigned long long)callers,
                       (unsigned long long)held, held == 1 ? "" : "s");
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/deploy/kubectl_meaning.h"

#include "base/alloc.h"

#include <string.h>

/* The first row whose words stand in a complaint says what it is about. */
static const struct {
    const char *words[3]; /* all of them */
    enum diag_code code;
    const char *message, *hint; /* %s: the namespace */
} meanings[] = {
    { { "object is being deleted" },
      E_DEP_007,
      "what was there before is still ending in namespace %s",
      "try again in a moment: its pod has 25 seconds" },
    { { "Apply failed with", "conflict" },
      E_DEP_007,
      "somebody else has set the same fields in namespace %s",
      "look who: kubectl get --show-managed-fields; `kubectl apply --server-side --force-conflicts` "
      "takes them over from what `mur deploy render` prints" },
    { { "exceeded quota" },
      E_DEP_006,
      "a ResourceQuota of namespace %s allows no more",
      "kubectl describe resourcequota; what has ended counts until it is deleted" },
    { { "namespaces \"", "not found" },
      E_DEP_006,
      "there is no namespace %s",
      "kubectl create namespace, or name another by --namespace" },
    { { "no matches for kind" },
      E_DEP_006,
      "the cluster does not know one of the kinds of objects",
      "install what defines it (HTTPRoute: the Gateway API; Sandbox, Agent: their operators), or "
      "render without it" },
    { { "is forbidden: User" },
      E_DEP_006,
      "this login may not do that in namespace %s",
      "it needs get, create, patch and delete of configmaps, serviceaccounts, services, "
      "networkpolicies, jobs and deployments: kubectl auth can-i --list" },
    { { "field is immutable" },
      E_DEP_007,
      "its Job is in namespace %s already, made of something else; a Job is never changed",
      "`mur deploy apply --replace` ends it and starts anew; `mur stop --fleet` only ends it" },
    { { "violates PodSecurity" },
      E_DEP_006,
      "the pod security level of namespace %s does not take the pod",
      "kubectl get namespace --show-labels says which level it has" },
    { { "failed calling webhook" },
      E_DEP_006,
      "a program that judges objects in this cluster did not answer",
      "the message names it; it must run before anything can be deployed" },
    { { "localhost:8080" },
      E_DEP_006,
      "kubectl knows no cluster: it found no kubeconfig",
      "name one by --kubeconfig or KUBECONFIG; kubectl config get-contexts shows what it has" },
    { { "no configuration has been provided" },
      E_DEP_006,
      "kubectl knows no cluster: it found no kubeconfig",
      "name one by --kubeconfig or KUBECONFIG; kubectl config get-contexts shows what it has" },
    { { "no such file or directory" },
      E_DEP_006,
      "a file of the login is not there",
      "--kubeconfig and KUBECONFIG name a file; so may what stands in it" },
    { { "context was not found" },
      E_DEP_006,
      "the kubeconfig names a context it does not have",
      "kubectl config get-contexts, then kubectl config use-context" },
    { { "context", "does not exist" },
      E_DEP_006,
      "the kubeconfig names a context it does not have",
      "kubectl config get-contexts, then kubectl config use-context" },
    { { "error loading config file" },
      E_DEP_006,
      "the kubeconfig cannot be read",
      "--kubeconfig and KUBECONFIG name a YAML file of kind Config" },
    { { "x509:" },
      E_DEP_006,
      "the API server's certificate is not the one the kubeconfig trusts",
      "take its certificate-authority anew from whoever runs the cluster" },
    { { "provide credentials" },
      E_DEP_006,
      "the API server does not take the login: its token is wrong or has expired",
      "log in again, or make a token: kubectl create token" },
    { { "Unauthorized" },
      E_DEP_006,
      "the API server does not take the login: its token is wrong or has expired",
      "log in again, or make a token: kubectl create token" },
    { { "executable", "not found" },
      E_DEP_006,
      "the program that logs in is not installed",
      "the message names it; the kubeconfig's users say how it is called" },
    { { "connection refused" },
      E_DEP_006,
      "the API server cannot be reached",
      "is it up, and is its address in the kubeconfig right? kubectl cluster-info" },
    { { "no such host" },
      E_DEP_006,
      "the API server cannot be reached: its name is not known here",
      "is its address in the kubeconfig right, and the VPN up? kubectl cluster-info" },
    { { "no route to host" },
      E_DEP_006,
      "the API server cannot be reached",
      "is its address in the kubeconfig right, and the VPN up? kubectl cluster-info" },
    { { "imeout" },
      E_DEP_006,
      "the API server did not answer in time",
      "is its address in the kubeconfig right, and the VPN up? kubectl cluster-info" },
};

static bool
has_all (const char *text, const char *const words[3])
{
    for (size_t i = 0; i < 3 && words[i]; i++)
        if (! strstr (text, words[i]))
            return false;
    return true;
}

bool
kubectl_explain (const struct kubectl *k, const struct kubectl_said *said, struct mur_error **err)
{
    const char *text = said->complaint.data ? said->complaint.data : "";
    for (size_t i = 0; i < ARRAY_LEN (meanings); i++) {
        if (! has_all (text, meanings[i].words))
            continue;
        const char *at = strstr (meanings[i].message, "%s");
        size_t before = at ? (size_t)(at - meanings[i].message) : strlen (meanings[i].message);
        mur_fail (err, meanings[i].code, "%.*s%s%s", (int)before, meanings[i].message,
                  at ? k->space : "", at ? at + 2 : "");
        return mur_hint (err, "%s", meanings[i].hint);
    }
    return mur_fail (err, E_DEP_006, "the API server did not take the objects: kubectl says why");
}

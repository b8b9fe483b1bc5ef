/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/export/gen_ai_provider.h"

#include "base/buf.h"

#include <string.h>

const char *
gen_ai_provider_name (const char *artifact, const char *host)
{
    static const struct {
        const char *end, *name;
    } hosts[] = {
        { "api.anthropic.com", "anthropic" },
        { "api.openai.com", "openai" },
        { ".openai.azure.com", "azure.ai.openai" },
        { ".services.ai.azure.com", "azure.ai.inference" },
        { "generativelanguage.googleapis.com", "gcp.gemini" },
        { "aiplatform.googleapis.com", "gcp.vertex_ai" },
        { ".amazonaws.com", "aws.bedrock" },
        { "api.mistral.ai", "mistral_ai" },
        { "api.groq.com", "groq" },
        { "api.deepseek.com", "deepseek" },
        { "api.cohere.com", "cohere" },
        { "api.x.ai", "x_ai" },
        { "api.perplexity.ai", "perplexity" },
        { "openrouter.ai", "openrouter" },
    };
    for (size_t i = 0; host && i < sizeof hosts / sizeof *hosts; i++)
        if (str_ends (host, hosts[i].end))
            return hosts[i].name;
    const char *name = artifact ? strrchr (artifact, '/') : NULL;
    name = name ? name + 1 : artifact;
    return name && str_starts (name, "driver-") ? name + strlen ("driver-") : name;
}

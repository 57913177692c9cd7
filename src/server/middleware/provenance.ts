import type { FastifyRequest } from "fastify";
import { RotaError } from "../../model/errors.ts";
import { CLIENT_VIAS, clientName, type Provenance, type Via } from "../../model/provenance.ts";
import type { Caller } from "../../model/role.ts";

/**
 * Who sends a request. `X-Rota-Via` and `X-Rota-Client` are what the client says of itself: they are recorded, and give no
 * rights.
 */
export function provenanceOf(
  { headers }: Pick<FastifyRequest, "headers">,
  caller: Caller,
  within: Provenance["within"],
): Provenance {
  const client = clientName(single(headers["x-rota-client"]));
  const { keyId, agent: agentId } = caller;
  const via = viaOf(single(headers["x-rota-via"]));
  return { createdBy: { keyId, agentId, via, ...(client === undefined ? {} : { client }) }, within };
}

function viaOf(claimed: string | undefined): Via {
  if (claimed === undefined) return "http";
  const via = CLIENT_VIAS.find((each) => each === claimed);
  if (via !== undefined) return via;
  throw new RotaError("invalid_field", `the header \`X-Rota-Via\` must be one of ${CLIENT_VIAS.join(", ")}`, {
    details: { field: "X-Rota-Via" },
  });
}

function single(value: string | string[] | undefined): string | undefined {
  return Array.isArray(value) ? value[0] : value;
}

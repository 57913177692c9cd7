import { useSession } from "../../api/session.tsx";
import { Field, FormDialog, numberOf, textOf } from "../../parts/form.tsx";
import { useQueryClient } from "../../queries/query-context.ts";

/** Creates a lane. */
export function NewLane({ onClose }: { readonly onClose: () => void }) {
  const { client } = useSession();
  const queries = useQueryClient();
  const send = async (fields: FormData) => {
    const name = textOf(fields, "name") ?? "";
    const { lanes } = await client.lanes.list();
    if (lanes.some((lane) => lane.name === name)) throw new Error(`there is a lane ${name} already`);
    return client.lanes.put(name, {
      concurrency: numberOf(fields, "concurrency") ?? 0,
      total: numberOf(fields, "total"),
    });
  };
  return (
    <FormDialog
      title="New lane"
      action="Create lane"
      send={send}
      onDone={() => void queries.invalidateQueries({ queryKey: ["lanes"] })}
      onClose={onClose}
    >
      <Field name="name" label="Name" required isFirst />
      <div className="form-2">
        <Field name="concurrency" label="On each node" type="number" min={0} required defaultValue={5} />
        <Field name="total" label="Over all nodes" type="number" min={1} isOptional />
      </div>
    </FormDialog>
  );
}

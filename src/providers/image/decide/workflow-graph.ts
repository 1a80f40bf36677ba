/** A workflow as ComfyUI's API takes it: nodes by id, each with its class and inputs. Pure. */

/** The output of another node: its id, and the number of the output. */
export type Link = readonly [node: string, output: number];
/** `bigint` for seeds, which are exact up to 2^64 in JSON and not in a JavaScript number. */
export type NodeInput = string | number | bigint | boolean | Link;

export interface WorkflowNode {
  readonly class_type: string;
  readonly inputs: Readonly<Record<string, NodeInput>>;
}

export type Workflow = Readonly<Record<string, WorkflowNode>>;

export function node(className: string, inputs: Readonly<Record<string, NodeInput>>): WorkflowNode {
  return { class_type: className, inputs };
}

/** Returns the JSON of a workflow with exact integers, which `JSON.stringify` cannot write. */
export function workflowJson(workflow: Workflow): string {
  const nodes = Object.entries(workflow).map(([id, { class_type: className, inputs }]) => {
    const texts = Object.entries(inputs).map(([name, value]) => `${JSON.stringify(name)}:${inputJson(value)}`);
    return `${JSON.stringify(id)}:{"class_type":${JSON.stringify(className)},"inputs":{${texts.join(',')}}}`;
  });
  return `{${nodes.join(',')}}`;
}

function inputJson(value: NodeInput): string {
  return typeof value === 'bigint' ? value.toString() : JSON.stringify(value);
}

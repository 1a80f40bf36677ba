/**
 * From a slot to its workload, complete to the last argument. A template is a workload without a port: ports are chosen when it is
 * applied, so the revision is hashed over a symbolic one. Pure; `createTemplates` remembers, so that a thousand slots cost little.
 */
import { createHash } from 'node:crypto';
import type { ModelFacts, Provider, ProviderRegistry, SlotContext } from '../../providers/provider.ts';
import { Revision, type SlotName } from '../../spec/names.ts';
import type { Capability } from '../../spec/provider-kinds.ts';
import type { SlotSpec } from '../../spec/slot-spec.ts';
import type { DesiredSlot, ImageReference, Mount, RuntimeTraits, Workload } from '../ports.ts';

export interface Template {
  readonly revision: Revision;
  readonly capabilities: readonly Capability[];
  /** What admission counts: the larger of the spec's and the estimate. */
  readonly memoryBytes: number;
  readonly image: ImageReference | undefined;
  readonly env: Readonly<Record<string, string>>;
  readonly mounts: readonly Mount[];
  readonly devices: readonly string[];
  /** The port inside, where the runtime publishes it; undefined where it shares the host's network. */
  readonly containerPort: number | undefined;
  readonly argv: (hostPort: number) => readonly [string, ...string[]];
}

export interface TemplateInputs {
  readonly slot: DesiredSlot;
  readonly provider: Provider;
  readonly model: ModelFacts;
  readonly image: ImageReference | undefined;
  readonly traits: RuntimeTraits;
  readonly modelsRoot: string;
}

/** Stands for the host port in what is hashed. */
const SYMBOLIC_PORT = 0;

function createTemplate({ slot, provider, model, image, traits, modelsRoot }: TemplateInputs): Template {
  const { spec } = slot;
  const shared = traits.network === 'shared';
  const seen = (path: string): string => pathSeen(path, modelsRoot, traits.modelsTarget);
  const context = (port: number): SlotContext => ({
    name: slot.name,
    spec,
    model,
    modelPath: seen(model.hostPath),
    ...(model.projectorPath === undefined ? {} : { projectorPath: seen(model.projectorPath) }),
    listen: shared ? { host: '127.0.0.1', port } : { host: '0.0.0.0', port: provider.containerPort },
  });
  const symbolic = context(SYMBOLIC_PORT);
  const parts = {
    image,
    env: { ...provider.buildEnv(symbolic), ...spec.env },
    mounts: traits.modelsTarget === undefined ? [] : [{ source: modelsRoot, target: traits.modelsTarget, readOnly: true }],
    devices: provider.devices(spec.backend),
  };
  let rendered: { readonly port: number; readonly argv: readonly [string, ...string[]] } | undefined;
  return {
    ...parts,
    revision: hash(spec, parts, provider.startCmd(symbolic)),
    capabilities: provider.capabilities(slot.name, spec, model),
    memoryBytes: Math.max(spec.resources.memoryBytes ?? 0, provider.estimateMemoryBytes(spec, model)),
    containerPort: shared ? undefined : provider.containerPort,
    argv(port) {
      if (rendered?.port !== port) rendered = { port, argv: provider.startCmd(context(port)) };
      return rendered.argv;
    },
  };
}

/** `templateOf` of `Desired`: one template a slot is remembered, for as long as spec, model and image are the same. */
export function createTemplates(
  providers: ProviderRegistry,
  traits: RuntimeTraits,
  modelsRoot: string,
): (slot: DesiredSlot, model: ModelFacts, image: ImageReference | undefined) => Template | undefined {
  const known = new Map<SlotName, { spec: SlotSpec; model: ModelFacts; image: ImageReference | undefined; template: Template }>();
  return (slot, model, image) => {
    const provider = providers[slot.spec.provider];
    if (provider === undefined) return undefined;
    const last = known.get(slot.name);
    if (last !== undefined && last.spec === slot.spec && last.model === model && sameImage(last.image, image)) return last.template;
    const template = createTemplate({ slot, provider, model, image, traits, modelsRoot });
    known.set(slot.name, { spec: slot.spec, model, image, template });
    return template;
  };
}

/** The workload of a template on a port, under a name that is free. */
export function workloadOf(slot: DesiredSlot, template: Template, hostPort: number, takenNames: ReadonlySet<string>): Workload {
  const plain = `svc-slot-${slot.name}`;
  return {
    name: takenNames.has(plain) ? `${plain}--${template.revision}` : plain,
    slot: slot.name,
    revision: template.revision,
    generation: slot.generation,
    image: template.image,
    argv: template.argv(hostPort),
    env: template.env,
    mounts: template.mounts,
    devices: template.devices,
    port: { host: hostPort, container: template.containerPort ?? hostPort },
    memoryLimitBytes: slot.spec.resources.memoryBytes,
  };
}

/** The lowest port of a range that is not taken; undefined when all are. */
export function freePort(range: { readonly first: number; readonly last: number }, taken: (port: number) => boolean): number | undefined {
  for (let port = range.first; port <= range.last; port += 1) if (!taken(port)) return port;
  return undefined;
}

function pathSeen(hostPath: string, root: string, target: string | undefined): string {
  if (target === undefined) return hostPath;
  return hostPath.startsWith(`${root}/`) ? `${target}${hostPath.slice(root.length)}` : hostPath;
}

function hash(spec: SlotSpec, parts: Pick<Template, 'image' | 'env' | 'mounts' | 'devices'>, argv: readonly string[]): Revision {
  const text = JSON.stringify([
    parts.image === undefined ? null : [parts.image.reference, parts.image.imageId ?? null],
    argv,
    Object.entries(parts.env).sort(([a], [b]) => (a < b ? -1 : 1)),
    parts.mounts.map(({ source, target, readOnly }) => [source, target, readOnly]),
    parts.devices,
    spec.resources.memoryBytes ?? null,
    spec.resources.gpus ?? null,
    spec.restartedAt ?? null,
    spec.cluster,
  ]);
  return Revision.parse(createHash('sha256').update(text).digest('hex').slice(0, 12));
}

function sameImage(a: ImageReference | undefined, b: ImageReference | undefined): boolean {
  return a?.reference === b?.reference && a?.imageId === b?.imageId;
}

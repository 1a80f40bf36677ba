/**
 * Builds the workflow of a request from the graphs of its family. A text of `graphs.json` that begins with "$" stands
 * for a value of the request, a file, or the output of a node. Pure.
 *
 *   loader ─► LoRAs ─► patches ─► encoders ─► images of an edit ─► sampler ─► decoder ─► file
 */
import GRAPHS from './graphs.json' with { type: 'json' };
import { FAMILIES, SIDES, type ImageFamily } from './image-families.ts';
import { besideCheckpoint, type ImageModel } from './image-model.ts';
import type { ImageParameters, ImageSize, Lora } from './image-parameters.ts';
import { isLink, node, type Link, type Scalar, type Workflow, type WorkflowNode } from './workflow-parameters.ts';

export interface WorkflowRequest {
  readonly model: ImageModel;
  readonly checkpoint: string;
  readonly parameters: Pick<ImageParameters, 'prompt' | 'negativePrompt' | 'n' | 'size' | 'steps' | 'cfg'> & {
    readonly sampler?: string | undefined;
    readonly scheduler?: string | undefined;
    readonly loras?: readonly Lora[] | undefined;
  };
  readonly seed: bigint;
  /** Unique per request: an existing name would belong to an earlier image. */
  readonly filenamePrefix: string;
  readonly source?: ImageSource | undefined;
  /** Class of the node that saves. Default: `SaveImage`. */
  readonly saveWith?: 'PreviewImage';
}

type SourceImage = ImageSize & { readonly name: string };

export interface ImageSource {
  readonly images: readonly [SourceImage, ...SourceImage[]];
  /** Its transparent parts change; undefined: the whole image. */
  readonly mask: string | undefined;
  readonly strength: number;
}

export interface BuiltWorkflow {
  readonly name: string;
  readonly workflow: Workflow;
  readonly saveNode: string;
}

const SAVE_NODE = '9';

interface Draft {
  readonly nodes: Record<string, WorkflowNode>;
  readonly ports: Record<'model' | 'clip' | 'vae' | 'positive' | 'negative_prompt', Link>;
}

export function buildWorkflow(request: WorkflowRequest): BuiltWorkflow {
  const { model, parameters, source, filenamePrefix, saveWith } = request;
  const family = FAMILIES[model.family];
  const { nodes, ports } = loaded(request, family);
  const size = parameters.size ?? { width: family.side, height: family.side };
  Object.assign(nodes, GRAPHS.encoders[family.encoding]);
  const references = family.references === undefined ? [] : (source?.images ?? []);
  for (const [index, image] of references.entries()) addReference({ nodes, ports }, image, index);
  const latent = references.length > 0 ? undefined : source;
  Object.assign(nodes, firstLatent(size, latent, { className: family.latent, n: parameters.n, vae: ports.vae }));
  Object.assign(nodes, GRAPHS.samplers[family.sampling]);
  nodes['8'] = node('VAEDecode', { samples: ['3', 0], vae: ports.vae });
  const saved = { images: ['8', 0] } as const;
  nodes[SAVE_NODE] = node(saveWith ?? 'SaveImage', saveWith === undefined ? { ...saved, filename_prefix: filenamePrefix } : saved);
  const values = new Map<string, Scalar | Link>([...Object.entries(ports), ...valuesOf(request, family, size, latent)]);
  return { name: workflowNameOf(model), saveNode: SAVE_NODE, workflow: fill(nodes, values) };
}

export function workflowNameOf({ family, companions }: ImageModel): string {
  if (FAMILIES[family].loader === undefined) return family;
  return companions === undefined ? `${family}-checkpoint` : `${family}-split`;
}

function loaded({ model, checkpoint, parameters: { loras = [] } }: WorkflowRequest, family: ImageFamily): Draft {
  const { nodes: loaders, ports: outputs } =
    GRAPHS.loaders[model.companions === undefined ? 'checkpoint' : (family.loader ?? 'checkpoint')];
  const nodes: Draft['nodes'] = { ...loaders };
  const linkOf = (value: unknown): Link => (isLink(value) ? value : ['4', 0]);
  const ports: Draft['ports'] = {
    model: linkOf(outputs.model),
    clip: linkOf(outputs.clip),
    vae: linkOf(outputs.vae),
    positive: ['6', 0],
    negative_prompt: ['7', 0],
  };
  for (const [index, { file, strength }] of loras.entries()) {
    const { model: from, clip } = ports;
    const id = `lora-${index}`;
    const lora = { lora_name: besideCheckpoint(checkpoint, file), strength_model: strength, strength_clip: strength };
    nodes[id] = node('LoraLoader', { model: from, clip, ...lora });
    Object.assign(ports, { model: [id, 0], clip: [id, 1] });
  }
  for (const patch of family.patches ?? []) {
    const { class_type: className, inputs } = GRAPHS.patches[patch];
    nodes[patch] = node(className, { model: ports.model, ...inputs });
    ports.model = [patch, 0];
  }
  return { nodes, ports };
}

/** Upstream's templates show a model images of about one megapixel. */
const REFERENCE_PIXELS = 1024 * 1024;

function addReference({ nodes, ports }: Draft, { name, width, height }: SourceImage, index: number): void {
  const scale = Math.min(1, Math.sqrt(REFERENCE_PIXELS / (width * height)));
  const side = (pixels: number): number => Math.max(SIDES.least, Math.round((pixels * scale) / 16) * 16);
  const [image, scaled, latent] = [`image-${index}`, `scaled-${index}`, `reference-${index}`];
  nodes[image] = node('LoadImage', { image: name });
  nodes[scaled] = scaledTo({ width: side(width), height: side(height) }, image);
  const encoders = ['6', '7'].filter((id) => nodes[id]?.class_type === 'TextEncodeQwenImageEditPlus');
  for (const id of encoders)
    nodes[id] = { class_type: 'TextEncodeQwenImageEditPlus', inputs: { ...nodes[id]?.inputs, [`image${index + 1}`]: [scaled, 0] } };
  if (encoders.length > 0) return;
  nodes[latent] = node('VAEEncode', { pixels: [scaled, 0], vae: ports.vae });
  for (const port of ['positive', 'negative_prompt'] as const) {
    const id = `${port}-${index}`;
    nodes[id] = node('ReferenceLatent', { conditioning: ports[port], latent: [latent, 0] });
    ports[port] = [id, 0];
  }
}

const scaledTo = ({ width, height }: ImageSize, image: string): WorkflowNode =>
  node('ImageScale', { image: [image, 0], upscale_method: 'bicubic', width, height, crop: 'disabled' });

interface LatentOptions {
  readonly className: string;
  readonly n: number;
  readonly vae: Link;
}

/** An edit without references begins with its image. */
function firstLatent(size: ImageSize, source: ImageSource | undefined, { className, n, vae }: LatentOptions): Workflow {
  if (source === undefined) return { '5': node(className, { ...size, batch_size: n }) };
  const { images, mask } = source;
  const pixels = { '20': node('LoadImage', { image: images[0].name }), '21': scaledTo(size, '20') };
  const encoded = node('VAEEncode', { pixels: ['21', 0], vae });
  if (mask === undefined) return { ...pixels, '22': encoded, '5': node('RepeatLatentBatch', { samples: ['22', 0], amount: n }) };
  return {
    ...pixels,
    '22': encoded,
    '23': node('RepeatLatentBatch', { samples: ['22', 0], amount: n }),
    '24': node('LoadImage', { image: mask }),
    // The second output is 1 where the file is transparent; the sampler changes these parts.
    '5': node('SetLatentNoiseMask', { samples: ['23', 0], mask: ['24', 1] }),
  };
}

function valuesOf(
  { model, checkpoint, parameters, seed }: WorkflowRequest,
  family: ImageFamily,
  size: ImageSize,
  latent: ImageSource | undefined,
): readonly (readonly [string, Scalar])[] {
  const { prompt, negativePrompt: negative, steps, cfg, sampler = family.sampler, scheduler = family.scheduler ?? '' } = parameters;
  const { t5 = '', clip = '', clip_g: clipG = '', encoder = '', vae = '' } = model.companions ?? {};
  const files = Object.entries({ t5, clip_l: clip, clip_g: clipG, encoder, vae_file: vae });
  const { encoderType = '', shift = 0 } = family;
  return [
    ...files.map(([name, file]) => [name, besideCheckpoint(checkpoint, file)] as const),
    ...Object.entries({ checkpoint, prompt, negative, seed, steps, cfg, sampler, scheduler, shift, ...size }),
    ['encoder_type', encoderType],
    ['denoise', latent?.strength ?? 1],
  ];
}

function fill(nodes: Workflow, values: ReadonlyMap<string, Scalar | Link>): Workflow {
  const valueOf = (input: unknown): unknown =>
    typeof input === 'string' && input.startsWith('$') ? values.get(input.slice(1)) : undefined;
  return Object.fromEntries(
    Object.entries(nodes).map(([id, { class_type: className, inputs }]) => [
      id,
      { class_type: className, inputs: Object.fromEntries(Object.entries(inputs).map(([name, input]) => [name, valueOf(input) ?? input])) },
    ]),
  );
}

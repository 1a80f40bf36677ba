/** A workflow as ComfyUI's editor saves it with "Export (API)", with the titles that make parameters of inputs. */
interface SavedNode {
  readonly class_type: string;
  readonly inputs: Readonly<Record<string, unknown>>;
  readonly _meta: { readonly title: string };
}

export type SavedWorkflow = Readonly<Record<string, SavedNode>>;

const node = (className: string, title: string, inputs: SavedNode['inputs']): SavedNode => ({
  inputs,
  class_type: className,
  _meta: { title },
});

/** Draws with a LoRA. `glow` is a parameter of its author; the size can be set, the number of images cannot. */
export const PORTRAIT: SavedWorkflow = {
  '1': node('CheckpointLoaderSimple', 'Load Checkpoint', { ckpt_name: 'sdxl-turbo\\base.safetensors' }),
  '2': node('LoraLoader', 'svc: glow=strength_model', {
    lora_name: 'glow.safetensors',
    strength_model: 0.5,
    strength_clip: 1,
    model: ['1', 0],
    clip: ['1', 1],
  }),
  '3': node('CLIPTextEncode', 'svc: prompt', { text: 'a portrait', clip: ['2', 1] }),
  '4': node('CLIPTextEncode', 'svc: negative_prompt', { text: 'blurry', clip: ['2', 1] }),
  '5': node('EmptyLatentImage', 'svc: size', { width: 832, height: 1216, batch_size: 1 }),
  '6': node('KSampler', 'svc: seed, steps, sampler=sampler_name', {
    seed: 7,
    steps: 8,
    cfg: 6.5,
    sampler_name: 'euler',
    scheduler: 'karras',
    denoise: 1,
    model: ['2', 0],
    positive: ['3', 0],
    negative: ['4', 0],
    latent_image: ['5', 0],
  }),
  '7': node('VAEDecode', 'VAE Decode', { samples: ['6', 0], vae: ['1', 2] }),
  '12:1': node('SaveImage', 'Save Image', { filename_prefix: 'portraits/ComfyUI', images: ['7', 0] }),
};

/** Changes an image where a mask says so. */
export const RETOUCH: SavedWorkflow = {
  ...PORTRAIT,
  '8': node('LoadImage', 'svc: image', { image: 'example.png' }),
  '9': node('LoadImage', 'svc: mask', { image: 'mask.png' }),
  '10': node('VAEEncode', 'VAE Encode', { pixels: ['8', 0], vae: ['1', 2] }),
  '5': node('SetLatentNoiseMask', 'Set Latent Noise Mask', { samples: ['10', 0], mask: ['9', 1] }),
  '6': node('KSampler', 'svc: strength', { ...PORTRAIT['6']?.inputs, denoise: 0.8 }),
};

/** Of a node, other inputs or another title; null: without the node. */
export function changed(
  workflow: SavedWorkflow,
  id: string,
  change: { readonly inputs?: object; readonly title?: string } | null,
): SavedWorkflow {
  const { [id]: found, ...others } = workflow;
  if (found === undefined) throw new Error(`There is no node "${id}"`);
  if (change === null) return others;
  return { ...workflow, [id]: node(found.class_type, change.title ?? found._meta.title, { ...found.inputs, ...change.inputs }) };
}

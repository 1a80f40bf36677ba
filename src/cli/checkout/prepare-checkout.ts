/** What the first `npm start` writes into a checkout: slot files to edit, and demo models that need no download. */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadDemoToolbox } from '../../models/demo-toolbox.ts';
import { messageOf } from '../../platform/error-text.ts';
import { fail, ok, type Result } from '../../schema/words/failure.ts';
import type { Settings } from '../../schema/settings/settings.ts';

const PRIMARY = `# The slot "primary" answers chat requests. Save this file, and the change takes effect a moment later.
backend = "cpu"

[model]
# A model of the catalogue, or a GGUF file in the model store.
# Try the other demo model: default = "demo-owl"
default = "demo-fox"
`;

const EMBED = `# The slot "embed" computes embeddings.
backend = "cpu"

[model]
default = "demo-embed"
`;

const STT = `# The slot "stt" writes down what is said in a recording. It is loaded with the first request: its engine is then downloaded once (about 11 MB).
load = "on-demand"

[model]
# A generated model without trained weights: its answer to every recording is "This is the demo."
# For a real one:  default = "moonshine-tiny-en"
default = "demo-listener"
aliases = ["whisper-1"]
`;

const TTS = `# The slot "tts" reads a text aloud. It is loaded with the first request.
load = "on-demand"

[model]
# A generated model without trained weights: it plays a tone for each letter.
# For a real one:  default = "kokoro-multi-lang-v1.0-int8"
default = "demo-speaker"
aliases = ["tts-1", "tts-1-hd", "gpt-4o-mini-tts"]
`;

/** Writes what is missing and never overwrites anything. Fails if a directory cannot be used. */
export async function prepareCheckout({ SVC_CONFIG_DIR: configDir, SVC_MODELS_DIR: modelsDir }: Settings): Promise<Result<void>> {
  try {
    const slotsDir = join(configDir, 'slots');
    // Undefined if the directory exists: its slots belong to the user, who may have deleted these.
    if ((await mkdir(slotsDir, { recursive: true })) !== undefined) {
      await writeFile(join(slotsDir, 'primary.toml'), PRIMARY, { flag: 'wx' });
      await writeFile(join(slotsDir, 'embed.toml'), EMBED, { flag: 'wx' });
      await writeFile(join(slotsDir, 'stt.toml'), STT, { flag: 'wx' });
      await writeFile(join(slotsDir, 'tts.toml'), TTS, { flag: 'wx' });
    }
    await mkdir(modelsDir, { recursive: true });
    const { writeDemoModels, writeDemoSpeech } = await loadDemoToolbox();
    await writeDemoModels(modelsDir);
    await writeDemoSpeech(modelsDir);
    return ok(undefined);
  } catch (error) {
    const message = `Make "${configDir}" and "${modelsDir}" writable, or choose other directories with SVC_CONFIG_DIR and SVC_STATE_DIR: ${messageOf(error)}`;
    return fail('stalled', 'SettingUnusable', message);
  }
}

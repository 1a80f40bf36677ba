/** The rows of `verb-table.ts` for models and their catalogue. */
import { FOREIGN_TOOLS } from '../models/decide/parse-model-name.ts';
import { MODEL_KINDS } from '../schema/slot/provider-kinds.ts';
import * as shared from './shared-options.ts';
import { argument, option, verb, type Verb } from './verb.ts';

/** Verbs with `--store` work on a directory of this machine; the others send requests to the service. */
export const MODEL_VERBS: readonly Verb[] = [
  verb('list', 'List the models of the catalogue and of the store', {
    options: [
      option('--kind <kind>', 'Only models of this kind', { choices: MODEL_KINDS }),
      option('--present', 'Only models in the store'),
      option('--all', 'Include models that this version cannot run, with the reason'),
      shared.OUTPUT_OR_NAME,
    ],
    examples: ['svcctl model list --kind coder', 'svcctl model list --present'],
    load: async () => (await import('./verbs/model-catalogue.ts')).runModelList,
  }),
  verb('show', 'Show files, licence, requirements and sources of a model', {
    arguments: [argument('<name>', 'Catalogue id, or another model name', { suggestions: 'models' })],
    options: [{ ...shared.OUTPUT, choices: ['table', 'json', 'yaml'] }],
    examples: ['svcctl model show qwen3-4b-instruct'],
    load: async () => (await import('./verbs/model-catalogue.ts')).runModelShow,
  }),
  verb('search', 'Search the Hugging Face Hub for GGUF models', {
    arguments: [argument('<text>', 'Words of the name of a repository')],
    options: [
      option('--limit <count>', 'Most repositories to list, up to 20', { default: '10' }),
      option('--cursor <cursor>', 'Next page, as the page before names it'),
      shared.OUTPUT,
    ],
    examples: ['svcctl model search "qwen3 4b"', 'svcctl model search gemma --limit 3 -o wide'],
    load: async () => (await import('./verbs/model-catalogue.ts')).runModelSearch,
  }),
  verb('pull', 'Download a model into the store of the service', {
    arguments: [
      argument('<name>', 'Catalogue id, "hf:owner/repo[:quantisation]", "hf:owner/repo/file.gguf" or an https URL', {
        suggestions: 'models',
      }),
    ],
    options: [
      option('--accept-license', 'Accept the licence of the model, if it restricts use'),
      option('--accept-new', 'Accept the file that the publisher has now, if it has replaced the one of the catalogue'),
      option('--sha256 <hash>', 'SHA-256 of the file at a URL'),
      option('--as <path>', 'Path in the store for the file at a URL (default: url/HOST/FILE)'),
      option('--no-wait', 'Return as soon as the download has started'),
    ],
    examples: ['svcctl model pull hf:unsloth/Qwen3-4B-Instruct-2507-GGUF:Q4_K_M', 'svcctl model pull demo-fox'],
    load: async () => (await import('./verbs/model.ts')).runModelPull,
  }),
  verb('rm', 'Remove models from the store of the service, unless a slot uses them', {
    arguments: [argument('<names...>', 'Model names', { suggestions: 'models' })],
    load: async () => (await import('./verbs/model.ts')).runModelRemove,
  }),
  verb('verify', 'Compare models in the store of this machine with their checksums', {
    arguments: [argument('[names...]', 'Model names (default: all models in the store)', { suggestions: 'models' })],
    options: [shared.STORE],
    load: async () => (await import('./checks/verify-models.ts')).runVerify,
  }),
  verb('prune', 'Remove files of downloads that were abandoned more than a day ago', {
    options: [shared.STORE, shared.DRY_RUN],
    load: async () => (await import('./checks/verify-models.ts')).runPrune,
  }),
  verb('import', 'Import models of Ollama, LM Studio, llama.cpp or Hugging Face, or GGUF files, into the store', {
    arguments: [argument('[files...]', 'GGUF files (default: models of other tools on this machine)')],
    options: [
      option('--from <tool>', 'Only models of this tool', { choices: FOREIGN_TOOLS }),
      option('--directory <path>', 'Model directory of the tool (default: its usual place)', { path: true }),
      shared.DRY_RUN,
      shared.STORE,
    ],
    examples: ['svcctl model import --dry-run', 'svcctl model import --from ollama', 'svcctl model import ~/models/m-Q4_K_M.gguf'],
    load: async () => (await import('./checks/verify-models.ts')).runImport,
  }),
  verb('fetch', 'Verify a model in the store of this machine, and download it if it is missing', {
    arguments: [argument('<id>', 'Catalogue id, path of a file in the store, or a name on the Hub such as "hf:owner/repo:Q4_K_M"')],
    options: [
      shared.STORE,
      option('--termination-log <file>', 'File for the reason of a failure (default: /dev/termination-log, if it exists)', { path: true }),
    ],
    load: async () => (await import('./verbs/model-fetch.ts')).runModelFetch,
  }),
];

export const CATALOGUE_VERBS: readonly Verb[] = [
  verb('update', 'Use a newer catalogue that is signed with the key in SVC_CATALOGUE_KEY', {
    options: [option('--from <source>', 'URL or file (default: $SVC_CATALOGUE_URL)', { path: true })],
    examples: ['svcctl catalogue update --from catalogue.toml'],
    load: async () => (await import('./verbs/update-catalogue.ts')).runCatalogueUpdate,
  }),
  verb('undo', 'Return to the catalogue before the last update', {
    load: async () => (await import('./verbs/update-catalogue.ts')).runCatalogueUndo,
  }),
];

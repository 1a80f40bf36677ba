/** All verbs. A row here and a function in `verbs/` make a verb; help, completion and reference follow from the row. */
import { SCOPES } from '../schema/words/access.ts';
import { SLOT_VERSIONS } from '../schema/words/name-rules.ts';
import { BACKENDS } from '../schema/slot/provider-kinds.ts';
import { CATALOGUE_VERBS, MODEL_VERBS } from './model-verbs.ts';
import { EVAL, MCP_VERBS, RECORD_VERBS } from './record-verbs.ts';
import { ROLLOUT_VERBS, SOURCE_VERBS, UPGRADE_VERBS } from './rollout-verbs.ts';
import * as shared from './shared-options.ts';
import { argument, option, verb, type Verb, type VerbGroup } from './verb.ts';

const SLOT_VERBS: readonly Verb[] = [
  verb('load', 'Enable and load a slot, optionally with another model', {
    arguments: [shared.SLOT],
    options: [option('--model <id>', 'New default model of the slot', { suggestions: 'models' }), ...shared.FORCE_AND_WAIT],
    examples: ['svcctl slot load primary', 'svcctl slot load primary --model demo-owl --wait'],
    load: async () => (await import('./verbs/slot.ts')).runLoad,
  }),
  verb('unload', 'Disable a slot and stop its workload', {
    arguments: [shared.SLOT],
    options: shared.WAIT,
    load: async () => (await import('./verbs/slot.ts')).runUnload,
  }),
  verb('restart', 'Restart the workload of a slot, also if the slot is stalled', {
    arguments: [shared.SLOT],
    options: shared.WAIT,
    load: async () => (await import('./verbs/slot.ts')).runRestart,
  }),
  verb('create', 'Create a slot', {
    arguments: [shared.SLOT],
    options: [...shared.NEW_SLOT, ...shared.FORCE_AND_WAIT],
    examples: ['svcctl slot create primary --model demo-fox --wait', 'svcctl slot create small --model demo-owl --on-demand'],
    load: async () => (await import('./verbs/slot.ts')).runCreate,
  }),
  verb('delete', 'Delete slots', {
    arguments: [{ ...shared.SLOT, name: '<slots...>', help: 'Slot names' }],
    options: shared.WAIT,
    load: async () => (await import('./verbs/slot.ts')).runDelete,
  }),
  verb('logs', 'Print the logs of a slot', {
    arguments: [shared.SLOT],
    options: shared.LOG_OPTIONS,
    load: async () => (await import('./verbs/slot.ts')).runLogs,
  }),
];

const PROFILE_VERBS: readonly Verb[] = [
  verb('list', 'List profiles and mark the active one', {
    options: [shared.OUTPUT_OR_NAME],
    load: async () => (await import('./verbs/profile.ts')).runProfileList,
  }),
  verb('show', 'Show the slots of a profile and the effect of a switch on each', {
    arguments: [shared.PROFILE],
    options: [shared.OUTPUT],
    examples: ['svcctl profile show coding', 'svcctl profile show coding -o yaml'],
    load: async () => (await import('./verbs/profile.ts')).runProfileShow,
  }),
  verb('save', 'Save all slots as a profile, replacing an existing profile of this name', {
    arguments: [shared.PROFILE],
    options: [
      { ...shared.FILE, help: 'Save the slots of this file or directory instead; "-" for standard input' },
      option('--no-replace', 'Fail if the profile exists'),
      shared.OUTPUT,
    ],
    examples: ['svcctl profile save coding', 'svcctl profile save images -f images/ --no-replace'],
    load: async () => (await import('./verbs/profile.ts')).runProfileSave,
  }),
  verb('apply', 'Switch to a profile: update slots that differ, disable slots that it does not contain', {
    arguments: [shared.PROFILE],
    options: [shared.DRY_RUN, shared.OUTPUT],
    examples: ['svcctl profile apply coding --dry-run', 'svcctl profile apply coding'],
    load: async () => (await import('./verbs/profile.ts')).runProfileApply,
  }),
  verb('delete', 'Delete profiles; slots stay as they are', {
    arguments: [{ ...shared.PROFILE, name: '<profiles...>', help: 'Profile names' }],
    load: async () => (await import('./verbs/profile.ts')).runProfileDelete,
  }),
];

const TOKEN_VERBS: readonly Verb[] = [
  verb('create', 'Create a token and print it once', {
    options: [
      option('--label <name>', 'Name of the token in lists and logs', { required: true }),
      option('--scope <scope>', shared.SCOPES_HELP, { default: 'v1-only', choices: SCOPES }),
      option('--expires <when>', 'Duration such as "30d", or a time such as "2027-01-31T12:00:00Z" (default: never)'),
      ...shared.LIMITS,
      shared.OUTPUT,
      shared.SECRET,
    ],
    examples: [
      'svcctl token create --label laptop',
      'svcctl token create --label admin --scope admin -n svc',
      'svcctl token create --label guest --models primary --requests-per-minute 20',
    ],
    load: async () => (await import('./verbs/token.ts')).runTokenCreate,
  }),
  verb('edit', 'Change the name, the end or the limits of a token', {
    arguments: [argument('<id>', 'Token id')],
    options: [
      option('--label <name>', 'New name of the token'),
      option('--expires <when>', 'New end: a duration, a time or "never"'),
      ...shared.LIMITS,
      shared.OUTPUT,
      shared.SECRET,
    ],
    examples: ['svcctl token edit 1a2b3c4d --requests-per-minute 60', 'svcctl token edit 1a2b3c4d --expires never --models none'],
    load: async () => (await import('./verbs/token.ts')).runTokenEdit,
  }),
  verb('list', 'List tokens without their secrets', {
    options: [shared.OUTPUT_OR_NAME, shared.SECRET],
    load: async () => (await import('./verbs/token.ts')).runTokenList,
  }),
  verb('revoke', 'Revoke tokens with immediate effect', {
    arguments: [argument('<ids...>', 'Token ids')],
    options: [shared.SECRET],
    load: async () => (await import('./verbs/token.ts')).runTokenRevoke,
  }),
];

const PEER = argument('<name>', 'Name of the other service, such as gpu-box');
const PEER_VERBS: readonly Verb[] = [
  verb('list', 'List services that announce themselves on the local network, and those with slots here', {
    options: [option('--wait <duration>', 'Time for responses', { default: '2s' }), shared.OUTPUT_OR_NAME],
    load: async () => (await import('./verbs/peer.ts')).runPeerList,
  }),
  verb('trust', 'Create a token for another service, and print the command that uses it there', {
    arguments: [PEER],
    options: [shared.SECRET],
    examples: ['svcctl peer trust laptop'],
    load: async () => (await import('./verbs/peer.ts')).runPeerTrust,
  }),
  verb('add', 'Declare the slots of another service as slots of this machine', {
    arguments: [argument('<service>', 'URL, or the name that "svcctl peer list" shows')],
    options: [
      option('--name <name>', 'Name of the service here (default: from its host)'),
      option('--credential-file <path>', 'File with its token, read by the service; "-" stores the one on standard input', { path: true }),
      option('--fingerprint <sha256>', 'Fingerprint of its certificate, as "sha256:FINGERPRINT"'),
      option('--slots <names>', 'Slots to declare, separated by commas (default: all that are on)'),
      option('--force', 'Replace files of other slots'),
    ],
    examples: [
      'svcctl peer add https://gpu-box.local:8443 --fingerprint sha256:FINGERPRINT --credential-file -',
      'svcctl peer add gpu-box --slots primary',
    ],
    load: async () => (await import('./verbs/peer.ts')).runPeerAdd,
  }),
  verb('remove', 'Delete the slots of another service from this machine, and its token', {
    arguments: [PEER],
    load: async () => (await import('./verbs/peer.ts')).runPeerRemove,
  }),
];

const TOOLBOX_VERBS: readonly Verb[] = [
  verb('list', 'List the container images of slots with their pins', {
    options: [shared.OUTPUT, shared.CHECKOUT],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxList,
  }),
  verb('build', 'Build an image with podman and pin it in toolboxes.toml', {
    arguments: [shared.PROVIDER, argument('[backend]', 'Backend (default: the first one of the provider)', { choices: BACKENDS })],
    options: [option('--build-arg <arguments...>', 'Build arguments of the Containerfile, such as BASE=…'), shared.CHECKOUT],
    examples: ['svcctl toolbox build gguf cpu', 'svcctl toolbox build stt'],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxBuild,
  }),
  verb('pull', 'Pull published images by digest', {
    arguments: [{ ...shared.PROVIDER, name: '[provider]', help: 'Provider kind (default: all)' }],
    options: [shared.CHECKOUT],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxPull,
  }),
  verb('verify', 'Compare the images of podman with their pins (exit code 1 if one differs)', {
    options: [shared.OUTPUT, shared.CHECKOUT],
    load: async () => (await import('./verbs/toolbox.ts')).runToolboxVerify,
  }),
];

const LISTED = ['slots', 'models', 'pulls', 'providers', 'engines', 'pods'];
export const VERBS: readonly (Verb | VerbGroup)[] = [
  verb('serve', 'Run the gateway and the controller (settings: SVC_* variables)', {
    options: [option('--checkout', 'Keep configuration, models and state in ".svc" of this checkout')],
    load: async () => (await import('./verbs/serve.ts')).runServe,
  }),
  verb('get', 'List slots, models, downloads, providers, engines or pods', {
    arguments: [
      argument('<what>', 'slots, models, pulls, providers, engines or, in a cluster, pods; or one of them as slot/NAME', {
        suggestions: LISTED,
      }),
      argument('[names...]', 'Names to list (default: all)', { suggestions: 'slots' }),
    ],
    options: [
      shared.OUTPUT_OR_NAME,
      option('-w, --watch', 'After the list, print each line again when it changes'),
      option('--chunk-size <count>', 'Slots that are read at once', { default: '500' }),
    ],
    examples: ['svcctl get slots', 'svcctl get slot/primary -o yaml', 'svcctl get slots --watch', 'svcctl get models -o name'],
    load: async () => (await import('./verbs/get.ts')).runGet,
  }),
  verb('wait', 'Wait for a condition or a state of slots', {
    arguments: [argument('<slot...>', 'Slots as slot/NAME', { suggestions: 'slot/NAME' })],
    options: [shared.GOAL, shared.TIMEOUT],
    examples: ['svcctl wait slot/primary', 'svcctl wait slot/primary slot/embed --for condition=Ready --timeout 2m'],
    load: async () => (await import('./verbs/slot.ts')).runWait,
  }),
  verb('explain', 'Explain the current state of a slot', {
    arguments: [shared.SLOT],
    load: async () => (await import('./verbs/slot.ts')).runExplain,
  }),
  verb('fit', 'Check whether a model fits into memory (exit code 1 if not)', {
    arguments: [argument('<model>', 'Model name, as in a slot', { suggestions: 'models' })],
    options: [
      option('--context <tokens>', 'Context length in tokens (default: the context length of the model)'),
      option('--backend <name>', 'Backend (default: the best one for the machine)', { choices: BACKENDS }),
      shared.OUTPUT,
    ],
    examples: ['svcctl fit demo-owl --context 8192', 'svcctl fit hf:unsloth/Qwen3-4B-Instruct-2507-GGUF'],
    load: async () => (await import('./verbs/model.ts')).runFit,
  }),
  verb('timeline', 'Show the events of a slot and their causes', {
    arguments: [shared.SLOT],
    options: [shared.OUTPUT, option('--limit <count>', 'Number of newest events', { default: '50' })],
    load: async () => (await import('./verbs/slot.ts')).runTimeline,
  }),
  ...RECORD_VERBS,
  EVAL,
  verb('logs', 'Print the logs of a slot; short for "slot logs"', {
    arguments: [shared.SLOT],
    options: shared.LOG_OPTIONS,
    examples: ['svcctl logs primary', 'svcctl logs primary --follow --tail 20'],
    load: async () => (await import('./verbs/slot.ts')).runLogs,
  }),
  { name: 'slot', help: 'Create, load, unload, restart and delete slots; print logs', verbs: SLOT_VERBS },
  { name: 'rollout', help: 'Show the history of a slot, undo edits, pause and resume', verbs: ROLLOUT_VERBS },
  UPGRADE_VERBS,
  { name: 'source', help: 'Show, sync and suspend the repository that declares the configuration', verbs: SOURCE_VERBS },
  verb('plan', 'Show what the controller would do (exit code 2 if anything, 1 if a slot could not be loaded)', {
    options: [shared.FILE, shared.PRUNE, shared.OUTPUT],
    examples: ['svcctl plan', 'svcctl plan -f primary.toml'],
    load: async () => (await import('./verbs/compare-slots.ts')).runPlan,
  }),
  verb('diff', 'Compare files with the service (exit code 2 if they differ, 1 if a slot could not be loaded)', {
    options: [shared.REQUIRED_FILE, shared.PRUNE],
    examples: ['svcctl diff -f slots/'],
    load: async () => (await import('./verbs/compare-slots.ts')).runDiff,
  }),
  verb('apply', 'Create and update slots from files', {
    options: [shared.REQUIRED_FILE, ...shared.APPLY_OPTIONS, shared.OUTPUT],
    examples: ['svcctl apply -f slots/', 'svcctl apply -f slots/ --prune --dry-run', 'cat slot.yaml | svcctl apply -f -'],
    load: async () => (await import('./verbs/compare-slots.ts')).runApply,
  }),
  { name: 'profile', help: 'Save sets of slots as profiles, and switch between them', verbs: PROFILE_VERBS },
  verb('validate', 'Validate files without contacting the service', {
    options: [shared.REQUIRED_FILE],
    examples: ['svcctl validate -f primary.toml', 'svcctl validate -f slots/'],
    load: async () => (await import('./verbs/compare-slots.ts')).runValidate,
  }),
  verb('convert', 'Convert slots between TOML files and SlotSpec resources', {
    options: [
      shared.REQUIRED_FILE,
      option('--to <format>', 'Target format: "crd" is the version that this release stores', {
        required: true,
        choices: ['crd', ...SLOT_VERSIONS, 'toml'],
      }),
      option('--output-dir <directory>', 'Directory for one file per slot (default: standard output)', { path: true }),
    ],
    examples: [
      'svcctl convert -f slots/ --to crd',
      'svcctl convert -f slots.yaml --to v1beta1',
      'svcctl convert -f slots.yaml --to toml --output-dir slots',
    ],
    load: async () => (await import('./verbs/compare-slots.ts')).runConvert,
  }),
  { name: 'model', help: 'List, pull, import, verify and remove models', verbs: MODEL_VERBS },
  { name: 'catalogue', help: 'Update the catalogue of models of this machine', verbs: CATALOGUE_VERBS },
  { name: 'token', help: 'Create, list and revoke API tokens', verbs: TOKEN_VERBS },
  { name: 'peer', help: 'Find other services, and use their slots', verbs: PEER_VERBS },
  { name: 'mcp', help: 'List, approve and reject the plans of agents', verbs: MCP_VERBS },
  { name: 'toolbox', help: 'List, build, pull and verify the container images of slots', verbs: TOOLBOX_VERBS },
  verb('hardware', 'Show CPU, memory, GPUs and NPUs of the machine of the service', {
    arguments: [argument('[record]', '"record": print a recording of this machine instead', { choices: ['record'] })],
    options: [option('-f, --file <path>', 'Show this recording without contacting the service', { path: true }), shared.OUTPUT],
    examples: ['svcctl hardware', 'svcctl hardware record > machine.json', 'svcctl hardware -f machine.json'],
    load: async () => (await import('./verbs/show-hardware.ts')).runHardware,
  }),
  verb('backup', 'Save configuration, tokens, history, voices and engines of this machine in an archive, and list the models', {
    arguments: [argument('<file>', 'Archive to write, such as svc-backup.tar.gz')],
    options: [shared.CHECKOUT],
    load: async () => (await import('./verbs/backup.ts')).runBackup,
  }),
  verb('restore', 'Restore an archive of "svcctl backup", and keep the files that it replaces', {
    arguments: [argument('<file>', 'Archive of "svcctl backup"')],
    options: [shared.CHECKOUT],
    load: async () => (await import('./verbs/backup.ts')).runRestore,
  }),
  verb('doctor', 'Check this machine or, with --context or -n, a cluster', {
    options: [option('--checkout', 'Check the configuration in ".svc" of this checkout, as used by "npm start"'), shared.OUTPUT],
    load: async () => (await import('./verbs/doctor.ts')).runDoctor,
  }),
  verb('completion', 'Print a completion script for a shell', {
    examples: ['source <(svcctl completion bash)', 'svcctl completion fish | source'],
    arguments: [argument('<shell>', 'Shell', { choices: ['bash', 'zsh', 'fish'] })],
    load: async () => (await import('./verbs/completion.ts')).createCompletion(VERBS, shared.GLOBAL_OPTIONS),
  }),
];

/** Texts of the playground, loaded with it. */
import type { Speed } from './decide/chat.ts';
import { formatSeconds } from './decide/format.ts';
import type { PlaygroundPart } from './decide/route.ts';
import type { Capability } from './types.ts';

export const PLAYGROUND_NAMES: Readonly<Record<PlaygroundPart, string>> = {
  chat: 'Chat',
  images: 'Images',
  speak: 'Text to speech',
  transcribe: 'Speech to text',
  similarity: 'Similarity',
  rerank: 'Rerank',
};

export const NO_SLOT: Readonly<Partial<Record<Capability, string>>> = {
  chat: 'No slot has a chat model',
  image: 'No slot has an image model',
  speech: 'No slot has a text-to-speech model',
  transcription: 'No slot has a speech-to-text model',
  embedding: 'No slot has an embedding model',
  rerank: 'No slot has a reranking model',
};

export const P = {
  slot: 'Slot',
  viewCode: 'View code',
  pending: 'Request pending',
  processing: 'Processing…',
  stop: 'Stop',
  stopped: 'Stopped',
  lengthReached: 'Stopped: token limit reached',
  message: 'Message',
  send: 'Send',
  newChat: 'New chat',
  reasoning: 'Reasoning',
  /** Only what the server said. */
  speedOf: ({ outputTokens, tokensPerSecond, firstTokenSeconds, promptTokens, cachedTokens }: Speed) =>
    [
      outputTokens !== undefined && `${outputTokens} tokens`,
      tokensPerSecond !== undefined && `${tokensPerSecond.toFixed(tokensPerSecond < 10 ? 1 : 0)} tokens/s`,
      firstTokenSeconds !== undefined && `first token ${formatSeconds(firstTokenSeconds)}`,
      promptTokens !== undefined && `${promptTokens} prompt tokens${cachedTokens === undefined ? '' : `, ${cachedTokens} cached`}`,
    ]
      .filter((part) => part !== false)
      .join(' · '),
  taskDone: 'Done',
  taskOpen: 'To do',
  toolCall: 'Tool call',
  toolResult: 'Tool result',
  resultOf: (tool: string) => `Result of ${tool}`,
  sendResults: 'Send results',
  you: 'You',
  conversation: 'Conversation',
  tryThese: 'Type a message, or try an example:',
  ideas: ['What can you help me with?', 'Explain in two sentences how a token differs from a word.', 'Write a haiku about a fox.'],
  attach: 'Attach images',
  noVision: 'This model does not accept images',
  removeImage: 'Remove image',
  image: 'Image',
  tools: 'Tools (JSON)',
  toolsWhy: 'Tool calls are shown, not executed. Enter their results yourself.',
  toolsInvalid: 'Tools must be a JSON array',
  prompt: 'Prompt',
  modelDefault: 'Model default',
  seed: 'Seed',
  seedHint: 'Random',
  steps: 'Steps',
  output: 'Output',
  withPreviews: 'Stream with previews',
  keepInGallery: 'Save to gallery',
  generate: 'Generate',
  generating: 'Generating',
  step: (done: number, total: number) => `Step ${done} of ${total}`,
  gallery: 'Gallery',
  galleryEmpty: 'No images yet. Images saved to the gallery stay here after a reload.',
  remove: 'Remove',
  expired: 'The image is no longer cached',
  text: 'Text',
  voice: 'Voice',
  speed: 'Speed',
  format: 'Format',
  generateSpeech: 'Generate speech',
  speech: 'Speech',
  microphone: 'Microphone',
  record: 'Record',
  stopRecording: 'Stop recording',
  recording: 'Recording…',
  noMicrophone: 'The microphone needs HTTPS or localhost. Open this page over HTTPS, or upload an audio file.',
  microphoneDenied: 'Microphone access denied. Allow it in the browser, or upload an audio file',
  audioFile: 'Audio file',
  language: 'Language',
  languageHint: 'Code such as "en". Default: detected',
  transcribe: 'Transcribe',
  transcript: 'Transcript',
  texts: 'Texts, one per line',
  compare: 'Compare',
  twoTexts: 'Enter at least two lines',
  similarities: 'Cosine similarity, -1 to 1',
  dimensions: 'dimensions',
  query: 'Query',
  documents: 'Documents, one per line',
  rank: 'Rank',
  ranking: 'Ranking',
} as const;

export const EXAMPLES = {
  texts: 'A fox runs through the forest\nA dog runs through the woods\nThe invoice is due on Friday',
  query: 'How do I reset my password?',
  documents: 'Open Settings and choose "Forgot password".\nThe office is closed on Sundays.\nPasswords have at least twelve characters.',
  speech: 'The quick brown fox jumps over the lazy dog.',
} as const;

/** Loads the generators of the demo models from `toolboxes/demo`, which nothing in `src` imports statically. */

interface DemoToolbox {
  /**
   * Returns the bytes of a file, the same on every machine. `file`: relative to the root of a store. Throws if it is
   * unknown.
   */
  encodeDemoFile(file: string): Uint8Array;
  /** Writes a file atomically to the absolute path `target`. */
  writeDemoFile(file: string, target: string): Promise<unknown>;
  /** Writes the models of a first run below `root`. Does not touch files that have the right content. */
  writeDemoModels(root: string): Promise<unknown>;
  writeDemoSpeech(root: string): Promise<void>;
}

const GENERATORS = '../../toolboxes/demo/demo-models.ts';

export async function loadDemoToolbox(): Promise<DemoToolbox> {
  return await import(GENERATORS);
}

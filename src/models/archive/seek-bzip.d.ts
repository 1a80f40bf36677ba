/** The part of the package that is used; it has no types of its own. */
declare module 'seek-bzip' {
  interface Input {
    /** Throws at the end. */
    readByte(): number;
    /** Returns the number of bytes, fewer only at the end. */
    read(into: number[] | Uint8Array, from: number, length: number): number;
    eof(): boolean;
  }
  interface Output {
    writeByte(byte: number): void;
  }
  interface Bunzip {
    /** Throws for damaged data. `multistream`: continues after the end of a stream, for parallel compressors. */
    decode(input: Input, output: Output, multistream: boolean): void;
  }
  const bunzip: Bunzip;
  export default bunzip;
}

/** Builds the dashboard without inline scripts and styles, which its content security policy forbids. */
export default {
  base: '/',
  publicDir: false,
  build: {
    target: 'es2023',
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    modulePreload: { polyfill: false },
    emptyOutDir: true,
    reportCompressedSize: false,
  },
};

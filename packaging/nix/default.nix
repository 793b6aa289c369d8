{ pkgs ? import <nixpkgs> { }, withMpi ? false, withOnednn ? true }:

pkgs.callPackage ./package.nix { inherit withMpi withOnednn; }
